#include "runtime/disk/disk_device.h"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <pangrad/error.h>

namespace pg::runtime {

// The mapped files of one path. A Block's handle is the file's descriptor plus one, so that no block is
// empty.
struct DiskFiles {
  const std::string path;
  ForkSafeMutex mutex;
  size_t mapped = 0;        // how many blocks there are
  size_t mapped_bytes = 0;  // the length of each

  explicit DiskFiles(std::string file) : path(std::move(file)) {}

  [[noreturn]] void fail(const char* what, size_t offset, int error) const {
    throw FileError(fmt::format("[disk] {}: {}, at byte {}: {}", path, what, offset, std::strerror(error)));
  }

  // Maps the whole file as it is; takes over the descriptor.
  Block map(int file, bool writable) {
    struct stat info{};
    const auto give_up = [&](const char* what, int error) {
      close(file);
      fail(what, 0, error);
    };
    if (fstat(file, &info) != 0) give_up("cannot stat it", errno);
    if (!S_ISREG(info.st_mode)) give_up("not a regular file", S_ISDIR(info.st_mode) ? EISDIR : EINVAL);
    Block block{.handle = static_cast<uint64_t>(file) + 1,
                .bytes = static_cast<size_t>(info.st_size),
                .writable = writable};
    if (block.bytes != 0) {
      void* memory =
          mmap(nullptr, block.bytes, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, file, 0);
      if (memory == MAP_FAILED) give_up("cannot map it", errno);
      block.host = static_cast<std::byte*>(memory);
    }
    const std::lock_guard lock(mutex);
    mapped++;
    mapped_bytes = block.bytes;
    return block;
  }

  void unmap(const Block& block) noexcept {
    if (block.host != nullptr) munmap(block.host, block.bytes);
    close(static_cast<int>(block.handle - 1));
    const std::lock_guard lock(mutex);
    mapped--;
  }

  Block open_existing() {
    int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    const bool writable = file >= 0;
    if (!writable) file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) fail("cannot open it", 0, errno);
    return map(file, writable);
  }

  Block create(size_t bytes) {
    if (bytes > static_cast<size_t>(std::numeric_limits<off_t>::max()))
      fail("cannot set its length", bytes, EFBIG);
    {
      const std::lock_guard lock(mutex);
      if (mapped != 0 && mapped_bytes != bytes) {
        throw FileError(fmt::format("[disk] {}: cannot set its length to {} while its {} bytes are in use",
                                    path, bytes, mapped_bytes));
      }
    }
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0) fail("cannot create it", 0, errno);
    if (ftruncate(file, static_cast<off_t>(bytes)) != 0) {
      const int error = errno;
      close(file);
      fail("cannot set its length", bytes, error);
    }
    return map(file, true);
  }
};

namespace {

class DiskMemory : public MemorySource {
 public:
  explicit DiskMemory(std::shared_ptr<DiskFiles> files) : files_(std::move(files)) {}
  Block acquire(size_t bytes, MemoryKind kind) override {
    Block block = files_->create(bytes);
    block.kind = kind;
    return block;
  }
  void release(const Block& block) noexcept override { files_->unmap(block); }
  size_t round(size_t bytes) const override { return bytes; }

 private:
  std::shared_ptr<DiskFiles> files_;
};

int descriptor(const Buffer& buffer) { return static_cast<int>(buffer.allocation->handle() - 1); }

}  // namespace

DiskDevice::DiskDevice(std::string name, std::string path)
    : DiskDevice(std::move(name), std::make_shared<DiskFiles>(std::move(path))) {}

DiskDevice::DiskDevice(std::string name, std::shared_ptr<DiskFiles> files)
    : Device(std::move(name), std::make_unique<DiskMemory>(files), {.bytes = SIZE_MAX, .cache = 0}),
      files_(std::move(files)) {}

DiskDevice::~DiskDevice() = default;

Buffer DiskDevice::contents() {
  const Block block = files_->open_existing();
  return adopt(block, [files = files_, block] { files->unmap(block); });
}

const Target& DiskDevice::target() const {
  throw DeviceError(fmt::format("[target] {} runs no programs", name()));
}

Compiler& DiskDevice::compiler(std::string_view) {
  throw DeviceError(fmt::format("[compile] {} runs no programs", name()));
}

std::shared_ptr<Program> DiskDevice::load(const ProgramImage& image) {
  throw DeviceError(fmt::format("[load] {}: {} runs no programs", image.signature.name, name()));
}

// Through the descriptor rather than the mapping: a file that has become shorter, or a disk that fails, is an
// error then and not a signal; and the system copies straight into huge pages.
void DiskDevice::read(void* to, const Buffer& from) {
  for (size_t done = 0; done < from.bytes;) {
    const size_t offset = from.offset + done;
    const ssize_t n = pread(descriptor(from), static_cast<std::byte*>(to) + done, from.bytes - done,
                            static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) files_->fail("cannot read", offset, errno);
    if (n == 0) {
      throw FileError(fmt::format("[disk] {}: ends at byte {}, it has become shorter", files_->path, offset));
    }
    done += static_cast<size_t>(n);
  }
}

void DiskDevice::write(const Buffer& to, const void* from) {
  for (size_t done = 0; done < to.bytes;) {
    const size_t offset = to.offset + done;
    const ssize_t n = pwrite(descriptor(to), static_cast<const std::byte*>(from) + done, to.bytes - done,
                             static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) files_->fail("cannot write", offset, n < 0 ? errno : ENOSPC);
    done += static_cast<size_t>(n);
  }
}

bool DiskDevice::copy_from_peer(const Buffer& to, const Buffer& from) {
  if (from.host() == nullptr) return false;
  from.device().synchronize();
  write(to, from.host());
  return true;
}

std::unique_ptr<Device> open_disk(const std::string& name, const std::string& argument) {
  return std::make_unique<DiskDevice>(name, argument);
}

}  // namespace pg::runtime
