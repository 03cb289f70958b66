#include "runtime/cpu/loader.h"

#include "runtime/cpu/object_file.h"

namespace pg::runtime {

LoadedKernel load_kernel(std::span<const std::byte> object, std::string_view function) {
  const ObjectFile file(object);
  const size_t entry = file.find(function);
  LoadedKernel kernel;
  kernel.memory = CodeMemory::get().allocate(file.code().bytes, file.code().alignment, file.data().bytes);
  const auto address = [](const std::byte* at) {
    return static_cast<uint64_t>(reinterpret_cast<uintptr_t>(at));
  };
  file.link({.memory = kernel.memory.write_code(), .address = address(kernel.memory.code())},
            {.memory = kernel.memory.write_data(), .address = address(kernel.memory.data())});
  kernel.memory.finish();
  kernel.entry = reinterpret_cast<KernelFunction>(kernel.memory.code() + entry);
  return kernel;
}

}  // namespace pg::runtime
