// Tensors that are ranges of files.
#pragma once

#include <cstddef>
#include <string>

#include <pangrad/tensor.h>

namespace pg::detail {

/// The elements at a byte of a file, as a tensor on the device DISK:path. Nothing is read. Throws FileError
/// if the file does not reach so far.
Tensor on_disk(const std::string& device, std::size_t offset, const Shape& shape, DType t);

}  // namespace pg::detail
