// IDX: 0, 0, a code of the type, the number of axes; the extents as 32-bit numbers; the elements in row-major
// order. All numbers have their high byte first.
#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "formats/file.h"
#include "formats/gzip.h"
#include <pangrad/datasets.h>

namespace pg {
namespace {

using formats::fail;

constexpr std::string_view kWhat = "idx_load";

DType dtype_of(std::uint8_t code) {
  switch (code) {
    case 0x08:
      return u8;
    case 0x09:
      return i8;
    case 0x0B:
      return i16;
    case 0x0C:
      return i32;
    case 0x0D:
      return f32;
    case 0x0E:
      return f64;
    default:
      return DType::Void;
  }
}

void swap_bytes(std::vector<std::uint8_t>& data, std::size_t width) {
  if (width == 1) return;
  for (auto element = data.begin(); element != data.end(); element += static_cast<std::ptrdiff_t>(width))
    std::reverse(element, element + static_cast<std::ptrdiff_t>(width));
}

}  // namespace

Tensor idx_load(const std::filesystem::path& path, const IdxOptions& options) {
  formats::GzipReader in(kWhat, path);
  std::uint8_t head[4];
  in.read(head, sizeof head, "the header of an IDX file");
  if (head[0] != 0 || head[1] != 0)
    fail(kWhat, path, "is no IDX file: bytes 0 and 1 are {} and {}, not 0", head[0], head[1]);
  DType dtype = dtype_of(head[2]);
  if (dtype == DType::Void) fail(kWhat, path, "byte 2 is no code of a type: {:#04x}", head[2]);

  Shape shape;
  std::size_t width = itemsize(dtype), bytes = width;
  for (int axis = 0; axis < head[3]; axis++) {
    std::uint8_t extent[4];
    std::size_t at = in.offset();
    in.read(extent, sizeof extent, "the extents");
    std::uint32_t value = std::uint32_t{extent[0]} << 24 | std::uint32_t{extent[1]} << 16 |
                          std::uint32_t{extent[2]} << 8 | std::uint32_t{extent[3]};
    shape.push_back(value);
    constexpr std::size_t kMost = std::size_t{1} << 46;
    if (__builtin_mul_overflow(bytes, value, &bytes) || bytes > kMost)
      fail(kWhat, path, "the extents up to byte {} are those of more data than can be", at + 4);
  }
  // A header is believed only as far as the file can hold what it claims, and memory taken as data comes.
  if (bytes > in.most_left()) {
    fail(kWhat, path, "is truncated: the header promises data up to byte {}, the file holds at most {}",
         in.offset() + bytes, in.offset() + in.most_left());
  }
  std::vector<std::uint8_t> data;
  while (data.size() < bytes) {
    constexpr std::size_t kFirst = std::size_t{1} << 24;
    std::size_t had = data.size(), more = std::min(bytes - had, std::max(had, kFirst));
    data.resize(had + more);
    in.read(data.data() + had, more, "data");
  }
  in.expect_end();
  swap_bytes(data, width);
  return Tensor::from_host(data.data(), shape, dtype, {.device = options.device});
}

}  // namespace pg
