// Safetensors: the length of a header as a little-endian u64; the header, JSON; the data. The header names
// for each tensor its dtype, its shape and its range of the data, which the ranges fill without gaps.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "formats/file.h"
#include "formats/safetensors_header.h"
#include "tensor/disk.h"
#include <pangrad/safetensors.h>

namespace pg {
namespace {

using formats::fail;
static_assert(std::endian::native == std::endian::little, "tensors are written as they are in memory");

constexpr std::string_view kLoad = "safe_load", kSave = "safe_save";
constexpr std::size_t kLength = sizeof(std::uint64_t);
constexpr std::uint64_t kLongestHeader = 100'000'000;  // as in the reference implementation

constexpr std::pair<DType, std::string_view> kDTypes[] = {
    {boolean, "BOOL"}, {i8, "I8"},   {u8, "U8"},   {i16, "I16"},   {u16, "U16"}, {i32, "I32"}, {u32, "U32"},
    {i64, "I64"},      {u64, "U64"}, {f16, "F16"}, {bf16, "BF16"}, {f32, "F32"}, {f64, "F64"},
};

std::string_view dtype_name(DType dtype) {
  for (auto [known, name] : kDTypes) {
    if (known == dtype) return name;
  }
  return {};
}

SafeHeader read_header(const formats::InputFile& file, const std::filesystem::path& path) {
  if (file.size() < kLength)
    fail(kLoad, path, "is truncated: ends at byte {}, within the length of the header", file.size());
  std::uint64_t length = 0;
  file.read(&length, 0, kLength);
  if (length > kLongestHeader)
    fail(kLoad, path, "is no safetensors file: bytes 0 to 8 give a header of {} bytes", length);
  if (length > file.size() - kLength) {
    fail(kLoad, path, "is truncated: ends at byte {}, within the header up to byte {}", file.size(),
         kLength + length);
  }
  std::string text(length, '\0');
  file.read(text.data(), kLength, length);
  SafeHeader header;
  for (formats::HeaderEntry& entry : formats::parse_header(text, kLength, path, header.metadata)) {
    auto known = std::find_if(std::begin(kDTypes), std::end(kDTypes),
                              [&](const auto& row) { return row.second == entry.dtype; });
    if (known == std::end(kDTypes)) {
      fail(kLoad, path, "\"{}\" has the dtype \"{}\" (byte {}), which is not supported", entry.name,
           entry.dtype, entry.dtype_at);
    }
    DType dtype = known->first;
    std::uint64_t bytes = itemsize(dtype);
    for (std::uint64_t extent : entry.shape) {
      if (__builtin_mul_overflow(bytes, extent, &bytes) || extent > INT64_MAX)
        fail(kLoad, path, "\"{}\" has a shape (byte {}) of more data than can be", entry.name,
             entry.shape_at);
    }
    if (entry.end < entry.begin || entry.end - entry.begin != bytes) {
      fail(kLoad, path, "\"{}\" has data_offsets {} and {} (byte {}), but its dtype and shape take {} bytes",
           entry.name, entry.begin, entry.end, entry.offsets_at, bytes);
    }
    header.tensors.push_back({.name = std::move(entry.name),
                              .dtype = dtype,
                              .shape = entry.shape,
                              .begin = entry.begin,
                              .end = entry.end});
  }

  std::sort(header.tensors.begin(), header.tensors.end(), [](const auto& a, const auto& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::uint64_t data = kLength + length, filled = 0;
  for (SafeHeader::Entry& entry : header.tensors) {
    if (entry.begin < filled) {
      fail(kLoad, path, "\"{}\" begins at byte {}, before byte {}, where another tensor ends", entry.name,
           data + entry.begin, data + filled);
    }
    if (entry.begin > filled) {
      fail(kLoad, path, "\"{}\" begins at byte {}, but nothing is at byte {}", entry.name, data + entry.begin,
           data + filled);
    }
    filled = entry.end;
    if (filled > file.size() - data) {
      fail(kLoad, path, "is truncated: ends at byte {}, within \"{}\" up to byte {}", file.size(), entry.name,
           data + filled);
    }
    entry.begin += data;
    entry.end += data;
  }
  if (data + filled != file.size())
    fail(kLoad, path, "goes on after its last tensor, which ends at byte {}", data + filled);
  return header;
}

}  // namespace

SafeHeader safe_load_metadata(const std::filesystem::path& path) {
  return read_header(formats::InputFile(kLoad, path), path);
}

StateDict safe_load(const std::filesystem::path& path, const SafeLoadOptions& options) {
  formats::InputFile file(kLoad, path);
  SafeHeader header = read_header(file, path);
  StateDict tensors;
  std::vector<std::uint8_t> bytes;
  std::string disk = "DISK:" + std::filesystem::absolute(path).lexically_normal().string();
  for (const SafeHeader::Entry& entry : header.tensors) {
    // What must be looked at to be checked is read now.
    if (options.lazy && entry.dtype != boolean && entry.end > entry.begin) {
      tensors.emplace(entry.name,
                      detail::on_disk(disk, entry.begin, entry.shape, entry.dtype).to(options.device));
      continue;
    }
    bytes.resize(entry.end - entry.begin);
    file.read(bytes.data(), entry.begin, bytes.size());
    if (entry.dtype == boolean) {
      auto bad = std::find_if(bytes.begin(), bytes.end(), [](std::uint8_t byte) { return byte > 1; });
      if (bad != bytes.end()) {
        fail(kLoad, path, "\"{}\" is bool, but byte {} is {}", entry.name,
             entry.begin + static_cast<std::size_t>(bad - bytes.begin()), *bad);
      }
    }
    tensors.emplace(entry.name,
                    Tensor::from_host(bytes.data(), entry.shape, entry.dtype, {.device = options.device}));
  }
  return tensors;
}

void safe_save(const StateDict& tensors, const std::filesystem::path& path, const Metadata& metadata) {
  using Json = nlohmann::ordered_json;
  // Wide elements first, so that each begins at a multiple of its size.
  std::vector<std::pair<const std::string*, const Tensor*>> order;
  std::vector<Tensor> all;
  for (const auto& [name, tensor] : tensors) {
    if (name == "__metadata__") throw ValueError("[safe_save] \"__metadata__\" is no name for a tensor");
    order.emplace_back(&name, &tensor);
    all.push_back(tensor);
  }
  auto width = [](const Tensor* tensor) { return itemsize(strong(tensor->dtype())); };
  std::sort(order.begin(), order.end(), [&](const auto& a, const auto& b) {
    return width(a.second) != width(b.second) ? width(a.second) > width(b.second) : *a.first < *b.first;
  });

  Json header = Json::object();
  if (!metadata.empty())
    header["__metadata__"] = std::map<std::string, std::string>(metadata.begin(), metadata.end());
  std::size_t filled = 0;
  for (const auto& [name, tensor] : order) {
    std::size_t end = filled + tensor->nbytes();
    header[*name] = {{"dtype", dtype_name(strong(tensor->dtype()))},
                     {"shape", tensor->shape().concrete()},
                     {"data_offsets", {filled, end}}};
    filled = end;
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const Json::exception&) {
    throw ValueError("[safe_save] a name or metadata is no UTF-8");
  }
  text.resize((text.size() + kLength - 1) / kLength * kLength, ' ');

  realize(all);
  formats::OutputFile file(kSave, path);
  std::uint64_t length = text.size();
  file.write(&length, kLength);
  file.write(text.data(), text.size());
  std::vector<std::uint8_t> bytes;
  for (const auto& [name, tensor] : order) {
    bytes.resize(tensor->nbytes());
    tensor->copy_to(bytes.data(), bytes.size());
    file.write(bytes.data(), bytes.size());
  }
  file.commit();
}

}  // namespace pg
