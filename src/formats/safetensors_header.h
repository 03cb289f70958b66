// The header of a safetensors file as it is written, before anybody asks whether it makes sense.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <pangrad/safetensors.h>

namespace pg::formats {

/// One tensor; `*_at` are the bytes of the file where a value begins, for messages.
struct HeaderEntry {
  std::string name;
  std::string dtype;
  std::vector<std::uint64_t> shape;
  std::uint64_t begin = 0, end = 0;  // in the data
  std::size_t dtype_at = 0, shape_at = 0, offsets_at = 0;
};

/// Parses the text of a header, which stands at byte `at` of the file. Throws FileError unless it is JSON of
/// the form that the format asks for, without a name that occurs twice.
std::vector<HeaderEntry> parse_header(std::string_view text, std::size_t at,
                                      const std::filesystem::path& path, Metadata& metadata);

}  // namespace pg::formats
