// The parts of `bench kernels`, a file each.
#pragma once

namespace pg::bench {

/// Matrix products of each dtype and layout, attention.
void products();
/// Convolutions of ResNet-50's shapes, depthwise, pooling.
void convolutions();
/// What memory bounds: elementwise chains, reductions, softmax and the normalisations.
void memory_bound();
/// Rows picked, added to, sorted and summed up.
void selections();
/// Whole networks: inference, a training step's memory, one model served by several threads.
void models();
/// What BEAM takes for the kernels of the demo's step, and what it gains.
void searching();

}  // namespace pg::bench
