// Safetensors files: named tensors, as state_dict() gives and load_state_dict() takes.
//
//   safe_save(state_dict(net), "net.safetensors");
//   load_state_dict(net, safe_load("net.safetensors"));
//
// A file is checked as a whole before any tensor is made of it. Whatever is wrong with it is a FileError with
// its path and the byte at which it is wrong.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <pangrad/dtype.h>
#include <pangrad/error.h>
#include <pangrad/shape.h>
#include <pangrad/state.h>

namespace pg {

using Metadata = std::map<std::string, std::string, std::less<>>;

/// What a file says about itself, in the order of its data.
struct SafeHeader {
  struct Entry {
    std::string name;
    DType dtype = DType::Void;
    Shape shape;
    std::size_t begin = 0, end = 0;  ///< bytes in the file
  };
  std::vector<Entry> tensors;
  Metadata metadata;
};

struct SafeLoadOptions {
  std::string device = {};
  /// Each tensor is copied from the file when it is first computed, so that a part of a large file costs that
  /// part. The file must stay as it is until then.
  bool lazy = false;
};

/// The tensors of a file. Throws FileError.
PG_API StateDict safe_load(const std::filesystem::path& path, const SafeLoadOptions& options = {});
/// Its header alone, checked against the size of the file. Throws FileError.
PG_API SafeHeader safe_load_metadata(const std::filesystem::path& path);
/// Computes the tensors and writes them. The file is complete or not there: it is written under another name
/// beside it and then renamed. Throws FileError, ValueError for a tensor or metadata called "__metadata__".
PG_API void safe_save(const StateDict& tensors, const std::filesystem::path& path,
                      const Metadata& metadata = {});

}  // namespace pg
