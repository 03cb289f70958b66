#include "formats/file.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pg::formats {
namespace {

constexpr std::size_t kChunk = std::size_t{1} << 30;  // one call transfers no more than 2 GiB

std::string reason(int error) { return std::generic_category().message(error); }

}  // namespace

InputFile::InputFile(std::string_view what, const std::filesystem::path& path)
    : what_(what), path_(path), file_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (file_ < 0) fail(what, path, "cannot be opened: {}", reason(errno));
  struct stat info{};
  bool regular = fstat(file_, &info) == 0 && S_ISREG(info.st_mode);
  if (!regular) {
    close(file_);
    fail(what, path, "is no regular file");
  }
  size_ = static_cast<std::size_t>(info.st_size);
}

InputFile::~InputFile() { close(file_); }

void InputFile::read(void* out, std::size_t offset, std::size_t bytes) const {
  auto* to = static_cast<char*>(out);
  std::size_t end = offset + bytes;
  while (offset < end) {
    ssize_t got = pread(file_, to, std::min(end - offset, kChunk), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(what_, path_, "cannot be read at byte {}: {}", offset, reason(errno));
    if (got == 0) fail(what_, path_, "ends at byte {}, within data up to byte {}", offset, end);
    offset += static_cast<std::size_t>(got);
    to += got;
  }
}

OutputFile::OutputFile(std::string_view what, const std::filesystem::path& path) : what_(what), path_(path) {
  static std::atomic<unsigned> count{0};
  constexpr int kAttempts = 100;
  for (int i = 0; i < kAttempts && file_ < 0; i++) {
    temporary_ = path;
    temporary_ += fmt::format(".{}.{}.part", getpid(), count++);
    constexpr mode_t kMode = 0666;  // less what the user's mask takes away
    file_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kMode);
    if (file_ < 0 && errno != EEXIST) break;
  }
  if (file_ < 0) fail(what, path, "cannot be written: {}", reason(errno));
}

OutputFile::~OutputFile() {
  if (file_ < 0) return;
  close(file_);
  unlink(temporary_.c_str());
}

void OutputFile::write(const void* data, std::size_t bytes) {
  const auto* from = static_cast<const char*>(data);
  while (bytes > 0) {
    ssize_t put = ::write(file_, from, std::min(bytes, kChunk));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) fail(what_, path_, "cannot be written at byte {}: {}", written_, reason(errno));
    written_ += static_cast<std::size_t>(put);
    from += put;
    bytes -= static_cast<std::size_t>(put);
  }
}

void OutputFile::commit() {
  // On disk before it has its name: a crash leaves the old file or the new one.
  if (fsync(file_) != 0) fail(what_, path_, "cannot be written at byte {}: {}", written_, reason(errno));
  if (rename(temporary_.c_str(), path_.c_str()) != 0)
    fail(what_, path_, "cannot be replaced: {}", reason(errno));
  close(file_);
  file_ = -1;
}

}  // namespace pg::formats
