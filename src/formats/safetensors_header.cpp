#include "formats/safetensors_header.h"

#include <cctype>
#include <iterator>
#include <string>
#include <unordered_set>
#include <utility>

#include <nlohmann/json.hpp>

#include "formats/file.h"

namespace pg::formats {
namespace {

using Json = nlohmann::json;

// Characters of a text, telling how far its reader has come: the parser's events carry no positions.
class Cursor {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  Cursor(const char* at, const char** reached) : at_(at), reached_(reached) {}
  reference operator*() const { return *at_; }
  Cursor& operator++() {
    *reached_ = ++at_;
    return *this;
  }
  friend bool operator!=(const Cursor& a, const Cursor& b) { return a.at_ != b.at_; }

 private:
  const char* at_;
  const char** reached_;
};

class HeaderReader {
 public:
  HeaderReader(std::string_view text, std::size_t at, const std::filesystem::path& path, Metadata& metadata)
      : text_(text), at_(at), path_(path), metadata_(metadata) {}

  std::vector<HeaderEntry> read() {
    Cursor begin(text_.data(), &reached_), end(text_.data() + text_.size(), &reached_);
    reached_ = text_.data();
    Json::sax_parse(begin, end, this);
    return std::move(entries_);
  }

  // What the parser calls.

  bool null() { refuse(word_start()); }
  bool boolean(bool) { refuse(word_start()); }
  bool number_integer(std::int64_t) { refuse(number_start()); }
  bool number_float(double, const std::string&) { refuse(number_start()); }
  bool binary(Json::binary_t&) { refuse(reached()); }

  bool number_unsigned(std::uint64_t value) {
    if (place_ == Place::ShapeItems) {
      entries_.back().shape.push_back(value);
    } else if (place_ == Place::OffsetItems && offsets_ < 2) {
      (offsets_++ == 0 ? entries_.back().begin : entries_.back().end) = value;
    } else {
      refuse(number_start());
    }
    return true;
  }

  bool string(std::string& value) {
    if (place_ == Place::Dtype) {
      entries_.back().dtype = value;
      entries_.back().dtype_at = string_start();
      place_ = Place::Tensor;
    } else if (place_ == Place::MetadataValue) {
      metadata_[key_] = value;
      place_ = Place::Metadata;
    } else {
      refuse(string_start());
    }
    return true;
  }

  bool start_object(std::size_t) {
    if (place_ == Place::Top) {
      place_ = Place::Names;
    } else if (place_ == Place::Names && key_ == "__metadata__") {
      place_ = Place::Metadata;
    } else if (place_ == Place::Names) {
      place_ = Place::Tensor;
      entries_.push_back({.name = key_});
      entry_at_ = reached() - 1;
      has_dtype_ = has_shape_ = has_offsets_ = false;
    } else {
      refuse(reached() - 1);
    }
    return true;
  }

  bool key(std::string& name) {
    if (place_ == Place::Names) {
      if (!names_.insert(name).second) fail_at(string_start(), "the name \"{}\" again", name);
    } else if (place_ == Place::Metadata) {
      if (metadata_.contains(name)) fail_at(string_start(), "the metadata \"{}\" again", name);
      place_ = Place::MetadataValue;
    } else {
      tensor_key(name);
    }
    key_ = name;
    return true;
  }

  bool end_object() {
    if (place_ == Place::Tensor && !(has_dtype_ && has_shape_ && has_offsets_)) {
      fail_at(entry_at_, "\"{}\" has no {}", entries_.back().name,
              !has_dtype_   ? "dtype"
              : !has_shape_ ? "shape"
                            : "data_offsets");
    }
    place_ = place_ == Place::Names ? Place::Top : Place::Names;
    return true;
  }

  bool start_array(std::size_t) {
    if (place_ == Place::Shape) {
      place_ = Place::ShapeItems;
      entries_.back().shape_at = reached() - 1;
    } else if (place_ == Place::Offsets) {
      place_ = Place::OffsetItems;
      entries_.back().offsets_at = reached() - 1;
      offsets_ = 0;
    } else {
      refuse(reached() - 1);
    }
    return true;
  }

  bool end_array() {
    if (place_ == Place::OffsetItems && offsets_ != 2)
      fail_at(entries_.back().offsets_at, "data_offsets of \"{}\" are not two", entries_.back().name);
    place_ = Place::Tensor;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const Json::exception&) {
    fail_at(at_ + position - 1, "this is no JSON");
  }

 private:
  enum class Place {
    Top,
    Names,
    Tensor,
    Dtype,
    Shape,
    Offsets,
    ShapeItems,
    OffsetItems,
    Metadata,
    MetadataValue
  };

  void tensor_key(const std::string& name) {
    bool* seen = name == "dtype" ? &has_dtype_ : name == "shape" ? &has_shape_ : &has_offsets_;
    if (seen == &has_offsets_ && name != "data_offsets")
      fail_at(string_start(), "\"{}\" is not known here", name);
    if (std::exchange(*seen, true)) fail_at(string_start(), "\"{}\" again", name);
    place_ = seen == &has_dtype_ ? Place::Dtype : seen == &has_shape_ ? Place::Shape : Place::Offsets;
  }

  // Where the token began that the parser has just read, in the file.
  std::size_t reached() const { return at_ + static_cast<std::size_t>(reached_ - text_.data()); }
  std::size_t string_start() const {
    std::size_t quote = reached() - at_ - 1;
    do {
      quote = text_.rfind('"', quote - 1);
    } while (is_escaped(quote));
    return at_ + quote;
  }
  bool is_escaped(std::size_t quote) const {
    std::size_t slashes = 0;
    while (slashes < quote && text_[quote - 1 - slashes] == '\\') slashes++;
    return slashes % 2 == 1;
  }
  std::size_t number_start() const {
    return start_of([](unsigned char c) { return c == '-' || c == '+' || c == '.' || std::isalnum(c); });
  }
  std::size_t word_start() const {
    return start_of([](unsigned char c) { return std::isalpha(c) != 0; });
  }
  std::size_t start_of(auto&& belongs) const {
    std::size_t end = reached() - at_;
    // Of a number the parser has read one character more, unless the text ends.
    if (end > 0 && !belongs(static_cast<unsigned char>(text_[end - 1]))) end--;
    while (end > 0 && belongs(static_cast<unsigned char>(text_[end - 1]))) end--;
    return at_ + end;
  }

  [[noreturn]] void refuse(std::size_t at) const {
    constexpr const char* kExpected[] = {"an object",
                                         "an object",
                                         "a key",
                                         "a string",
                                         "a list",
                                         "a list",
                                         "a number of at least 0",
                                         "two numbers of at least 0",
                                         "a key",
                                         "a string"};
    fail_at(at, "not {}, as there should be", kExpected[static_cast<int>(place_)]);
  }
  template <class... Args>
  [[noreturn]] void fail_at(std::size_t at, fmt::format_string<Args...> problem, Args&&... args) const {
    fail("safe_load", path_, "the header is malformed at byte {}: {}", at,
         fmt::format(problem, std::forward<Args>(args)...));
  }

  const std::string_view text_;
  const std::size_t at_;
  const std::filesystem::path& path_;
  Metadata& metadata_;
  const char* reached_ = nullptr;

  Place place_ = Place::Top;
  std::string key_;
  std::unordered_set<std::string> names_;
  std::vector<HeaderEntry> entries_;
  std::size_t entry_at_ = 0;
  int offsets_ = 0;
  bool has_dtype_ = false, has_shape_ = false, has_offsets_ = false;
};

}  // namespace

std::vector<HeaderEntry> parse_header(std::string_view text, std::size_t at,
                                      const std::filesystem::path& path, Metadata& metadata) {
  return HeaderReader(text, at, path, metadata).read();
}

}  // namespace pg::formats
