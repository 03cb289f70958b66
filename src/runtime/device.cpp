#include "runtime/device.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <pangrad/error.h>

namespace pg::runtime {

Allocation::~Allocation() {
  if (kind() != MemoryKind::Foreign) {
    device_.pool_.free(block_);
    return;
  }
  device_.pool_.count_foreign(bytes_, false);
  try {
    if (deleter_) deleter_();
  } catch (...) {
    // The deleter promised not to, and a destructor has nobody to tell.
  }
}

Buffer Buffer::slice(size_t start, size_t length) const {
  if (start > bytes || length > bytes - start) {
    throw IndexError(fmt::format("[slice] bytes {} to {} of a buffer of {}", start, start + length, bytes));
  }
  return {allocation, offset + start, length};
}

Device::Device(std::string name, std::unique_ptr<MemorySource> source, MemoryPool::Limits limits)
    : name_(std::move(name)), pool_(name_, std::move(source), limits) {}

Device::~Device() = default;

Buffer Device::wrap(const Block& block, size_t bytes, std::function<void()> deleter) {
  try {
    return {std::make_shared<Allocation>(Allocation::Key{}, *this, block, bytes, std::move(deleter)), 0,
            bytes};
  } catch (...) {
    if (block.kind != MemoryKind::Foreign) pool_.free(block);
    throw;
  }
}

Buffer Device::allocate(size_t bytes, MemoryKind kind) {
  if (kind == MemoryKind::Foreign) throw ValueError("[allocate] foreign memory is borrowed, not allocated");
  return wrap(pool_.allocate(bytes, kind), bytes);
}

Buffer Device::borrow(void* memory, size_t bytes, std::function<void()> deleter, bool writable) {
  if (!reaches_host())
    throw DeviceError(fmt::format("[borrow] {} cannot reach the memory of the host", name_));
  if (memory == nullptr && bytes != 0)
    throw ValueError(fmt::format("[borrow] {} bytes at a null address", bytes));
  return adopt({.host = static_cast<std::byte*>(memory), .bytes = bytes, .writable = writable},
               std::move(deleter));
}

Buffer Device::adopt(const Block& block, std::function<void()> deleter) {
  Block foreign = block;
  foreign.kind = MemoryKind::Foreign;
  pool_.count_foreign(foreign.bytes, true);
  try {
    return wrap(foreign, foreign.bytes, std::move(deleter));
  } catch (...) {
    pool_.count_foreign(foreign.bytes, false);
    throw;
  }
}

Buffer Device::contents() {
  throw DeviceError(fmt::format("[contents] {} holds nothing that was not put there", name_));
}

bool Device::can_map(const Buffer& buffer) const {
  return &buffer.device() == this || (reaches_host() && buffer.host() != nullptr);
}

Buffer Device::map(const Buffer& buffer) {
  if (&buffer.device() == this) return buffer;
  if (!can_map(buffer)) {
    throw DeviceError(fmt::format("[map] {} cannot reach the memory of {}", name_, buffer.device().name()));
  }
  return borrow(buffer.host(), buffer.bytes, [keep = buffer.allocation] {}, buffer.allocation->writable());
}

void Device::copy_in(const Buffer& to, const void* from) {
  if (&to.device() != this)
    throw DeviceError(fmt::format("[copy] a buffer of {} given to {}", to.device().name(), name_));
  if (!to.allocation->writable())
    throw DeviceError(fmt::format("[copy] the target on {} is read-only", name_));
  if (to.bytes != 0) write(to, from);
}

void Device::copy_out(void* to, const Buffer& from) {
  if (&from.device() != this)
    throw DeviceError(fmt::format("[copy] a buffer of {} given to {}", from.device().name(), name_));
  if (from.bytes != 0) read(to, from);
}

bool Device::copy_from_peer(const Buffer&, const Buffer&) { return false; }

void Device::wait_for(Device& other, uint64_t value) { other.wait(value); }

void check_copy(const Buffer& to, const Buffer& from) {
  if (to.bytes != from.bytes)
    throw ValueError(fmt::format("[copy] {} bytes from {} to {} bytes on {}", from.bytes,
                                 from.device().name(), to.bytes, to.device().name()));
  if (!to.allocation->writable())
    throw DeviceError(fmt::format("[copy] the target on {} is read-only", to.device().name()));
}

void copy(const Buffer& to, const Buffer& from) {
  check_copy(to, from);
  if (to.bytes == 0 || to.device().copy_from_peer(to, from)) return;
  Device& target = to.device();
  Device& source = from.device();
  source.synchronize();
  if (to.host() != nullptr) {
    target.synchronize();
    return source.read(to.host(), from);
  }
  if (from.host() != nullptr) return target.write(to, from.host());
  // Neither side sees the other: through the host, in pieces.
  constexpr size_t kPiece = size_t{4} << 20;
  const auto staging = std::make_unique<std::byte[]>(std::min(kPiece, to.bytes));
  for (size_t done = 0; done < to.bytes; done += kPiece) {
    const size_t bytes = std::min(kPiece, to.bytes - done);
    source.read(staging.get(), from.slice(done, bytes));
    target.write(to.slice(done, bytes), staging.get());
  }
}

}  // namespace pg::runtime
