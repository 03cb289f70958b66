// The DISK device: one file as memory. Its contents are a Buffer over the mapped file; allocating makes the
// file that size. Nothing runs here.
#pragma once

#include <memory>

#include "runtime/device.h"

namespace pg::runtime {

struct DiskFiles;

class DiskDevice : public Device {
 public:
  /// `path` need not exist yet. As on all devices allocate(bytes) makes memory, here by creating the file or
  /// changing its length: it keeps what it held as far as that reached and is zero beyond. FileError if that
  /// fails, or if the file is in use with another length.
  DiskDevice(std::string name, std::string path);
  ~DiskDevice() override;

  /// The whole file, writable if the file is. FileError if there is none or it is no regular file.
  Buffer contents() override;

  /// DeviceError, always.
  const Target& target() const override;
  std::vector<std::string> languages() const override { return {}; }
  /// DeviceError, always.
  Compiler& compiler(std::string_view language) override;
  /// DeviceError, always.
  std::shared_ptr<Program> load(const ProgramImage& image) override;

  uint64_t submitted() const override { return 0; }
  uint64_t completed() const override { return 0; }
  void wait(uint64_t) override {}

 protected:
  // FileError with the offset if the file does not reach so far any more, or cannot be read or written there.
  void write(const Buffer& to, const void* from) override;
  void read(void* to, const Buffer& from) override;
  bool copy_from_peer(const Buffer& to, const Buffer& from) override;

 private:
  DiskDevice(std::string name, std::shared_ptr<DiskFiles> files);

  std::shared_ptr<DiskFiles> files_;  // shared with the source of the pool
};

/// For the registry. `argument` is the path.
std::unique_ptr<Device> open_disk(const std::string& name, const std::string& argument);

}  // namespace pg::runtime
