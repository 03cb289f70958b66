// What the tensor room asks of the engine: storage from host data, computing values, reading them back. The engine
// joins schedule, codegen, render and runtime behind these few calls. None of them may be called inside a GraphScope,
// but for device_of.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/build.h"
#include "ir/node.h"

namespace pg::engine {

/// A new storage on a device holding a copy of the bytes; the Buffer leaf of it. dims concrete.
UOp buffer_from_host(std::string_view device, DType t, Dims dims, const void* bytes);
/// Storage with unspecified contents, allocated at its first write.
UOp empty_buffer(std::string_view device, DType t, Dims dims);
/// Computes the values of the roots (tensor-graph nodes); result i is the Buffer leaf with the contents of root i (for a
/// node that is a contiguous range of a Buffer: a view of it, without a kernel). Nodes that were computed are remembered
/// as materialized (ir Cold::materialized). A root of the form After(old, Store(view(old), x)) is executed in place when
/// nothing outside these roots still holds `old` (counted by node references), else on a copy.
std::vector<UOp> realize(std::span<const UOp> roots);
/// Copies the contents of a Buffer leaf to host memory (waits for the device).
void read(Ref buffer, void* out, std::size_t bytes);
/// The device a node's value lives on; "" for constants without device.
std::string device_of(Ref node);
/// Flag DEV, or "CPU".
std::string default_device();

}  // namespace pg::engine
