// Whole files in and out, with errors that say which file, and where in it.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include <pangrad/error.h>

namespace pg::formats {

/// Throws FileError: "[what] path: problem".
template <class... Args>
[[noreturn]] void fail(std::string_view what, const std::filesystem::path& path,
                       fmt::format_string<Args...> problem, Args&&... args) {
  throw FileError(
      fmt::format("[{}] {}: {}", what, path.string(), fmt::format(problem, std::forward<Args>(args)...)));
}

/// An open file to read from any place.
class InputFile {
 public:
  /// Throws FileError unless it is a regular file that can be read.
  InputFile(std::string_view what, const std::filesystem::path& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  std::size_t size() const { return size_; }
  /// Throws FileError if the file ends within the range, as it may while somebody writes it.
  void read(void* out, std::size_t offset, std::size_t bytes) const;

 private:
  const std::string what_;
  const std::filesystem::path path_;
  int file_;
  std::size_t size_ = 0;
};

/// A file written under another name and put in its place by commit(); without it nothing remains.
class OutputFile {
 public:
  OutputFile(std::string_view what, const std::filesystem::path& path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(const void* data, std::size_t bytes);
  void commit();

 private:
  const std::string what_;
  const std::filesystem::path path_;
  std::filesystem::path temporary_;
  int file_ = -1;
  std::size_t written_ = 0;
};

}  // namespace pg::formats
