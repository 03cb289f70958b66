// What this machine does at best with the threads that kernels run on, measured now: the limits that figures
// are held against. Each call takes some 10 ms, so that it can alternate with what it is compared with.
#pragma once

namespace pg::bench {

/// How many threads work on one kernel.
int threads();
/// GFLOP/s of independent chains of f32 multiply-adds on all threads.
double peak_gflops();
/// GB/s read and written by copying 128 MB in all, the better of plain and streaming stores.
double copy_gbytes();
/// GB/s of reading 128 MB.
double read_gbytes();

}  // namespace pg::bench
