#include "formats/gzip.h"

#include <algorithm>
#include <limits>
#include <new>

#include <zlib.h>

namespace pg::formats {
namespace {

constexpr std::size_t kBuffer = 1 << 16;
constexpr std::size_t kBestRatio = 1032;  // of deflate

}  // namespace

// The file may hold several members, one after the other; their contents are joined.
struct GzipReader::Inflater {
  Inflater() : buffer(kBuffer) {
    constexpr int kGzipOnly = MAX_WBITS + 16;
    if (inflateInit2(&stream, kGzipOnly) != Z_OK) throw std::bad_alloc();
  }
  ~Inflater() { inflateEnd(&stream); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  z_stream stream{};
  std::vector<std::uint8_t> buffer;
  std::size_t fetched = 0;    // bytes of the file that went into the buffer
  bool member_ended = false;  // nothing of the next member was read yet
};

GzipReader::GzipReader(std::string_view what, const std::filesystem::path& path)
    : what_(what), path_(path), file_(what, path) {
  std::uint8_t magic[2] = {};
  if (file_.size() >= sizeof magic) file_.read(magic, 0, sizeof magic);
  if (magic[0] == 0x1f && magic[1] == 0x8b) inflater_ = std::make_unique<Inflater>();
}

GzipReader::~GzipReader() = default;

std::size_t GzipReader::most_left() const {
  if (!inflater_) return file_.size() - offset_;
  std::size_t compressed = file_.size() - inflater_->fetched + inflater_->stream.avail_in;
  // What the inflater still holds back is at most a window.
  return compressed * kBestRatio + (std::size_t{1} << MAX_WBITS);
}

std::size_t GzipReader::read_some(std::uint8_t* out, std::size_t bytes) {
  if (!inflater_) {
    bytes = std::min(bytes, file_.size() - offset_);
    file_.read(out, offset_, bytes);
    return bytes;
  }
  z_stream& stream = inflater_->stream;
  std::size_t room = std::min<std::size_t>(bytes, std::numeric_limits<uInt>::max());
  stream.next_out = out;
  stream.avail_out = static_cast<uInt>(room);
  while (stream.avail_out == room) {
    if (stream.avail_in == 0) {
      std::size_t fetch = std::min(kBuffer, file_.size() - inflater_->fetched);
      if (fetch == 0 && inflater_->member_ended) return 0;
      if (fetch == 0) {
        fail(what_, path_,
             "is truncated: the compressed data ends at byte {}, within its contents at byte {}",
             file_.size(), offset_);
      }
      file_.read(inflater_->buffer.data(), inflater_->fetched, fetch);
      inflater_->fetched += fetch;
      stream.next_in = inflater_->buffer.data();
      stream.avail_in = static_cast<uInt>(fetch);
    }
    if (inflater_->member_ended) inflateReset(&stream);
    int status = inflate(&stream, Z_NO_FLUSH);
    inflater_->member_ended = status == Z_STREAM_END;
    if (status == Z_MEM_ERROR) throw std::bad_alloc();
    if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR) {
      fail(what_, path_, "is damaged at byte {}, within its contents at byte {}: {}",
           inflater_->fetched - stream.avail_in, offset_ + room - stream.avail_out,
           stream.msg ? stream.msg : "no compressed data");
    }
  }
  return room - stream.avail_out;
}

void GzipReader::read(void* out, std::size_t bytes, std::string_view part) {
  auto* to = static_cast<std::uint8_t*>(out);
  std::size_t end = offset_ + bytes;
  while (offset_ < end) {
    std::size_t got = read_some(to, end - offset_);
    if (got == 0)
      fail(what_, path_, "is truncated: ends at byte {}, within {} up to byte {}", offset_, part, end);
    offset_ += got;
    to += got;
  }
}

void GzipReader::expect_end() {
  std::uint8_t more = 0;
  if (read_some(&more, 1) != 0) fail(what_, path_, "goes on after its data, which ends at byte {}", offset_);
}

}  // namespace pg::formats
