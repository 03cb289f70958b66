// Memory of the host for the CPU's pool, and how much of it there is.
#pragma once

#include "runtime/memory_pool.h"

namespace pg::runtime {

/// Large blocks are mapped in huge pages where the system gives them, small ones come from malloc. Aligned to
/// 64 bytes at least.
class HostMemorySource : public MemorySource {
 public:
  Block acquire(size_t bytes, MemoryKind kind) override;
  void release(const Block& block) noexcept override;
};

/// Bytes of memory that this process may use: what the machine has, or its control group allows.
size_t host_memory_bytes();

}  // namespace pg::runtime
