// A file read from begin to end, decompressed on the way if it is compressed by gzip.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "formats/file.h"

namespace pg::formats {

class GzipReader {
 public:
  /// Throws FileError as InputFile.
  GzipReader(std::string_view what, const std::filesystem::path& path);
  ~GzipReader();
  GzipReader(const GzipReader&) = delete;
  GzipReader& operator=(const GzipReader&) = delete;

  /// Bytes of contents read so far.
  std::size_t offset() const { return offset_; }
  /// More bytes of contents cannot follow.
  std::size_t most_left() const;
  /// Throws FileError if the contents end before, naming what is cut off, or are damaged.
  void read(void* out, std::size_t bytes, std::string_view part);
  /// Throws FileError if anything follows, or the checksum is wrong.
  void expect_end();

 private:
  struct Inflater;

  std::size_t read_some(std::uint8_t* out, std::size_t bytes);

  const std::string what_;
  const std::filesystem::path path_;
  InputFile file_;
  std::size_t offset_ = 0;
  std::unique_ptr<Inflater> inflater_;  // null for plain files
};

}  // namespace pg::formats
