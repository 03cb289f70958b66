// The file parsers on files that are nearly right: each is read as it stands, or refused with a FileError,
// and nothing else happens. Seeded; what a failure prints is the file.
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "formats/files.h"
#include <pangrad/datasets.h>
#include <pangrad/safetensors.h>

namespace pg::formats {
namespace {

using namespace std::string_literals;

class Mutator {
 public:
  explicit Mutator(std::uint32_t seed) : random_(seed) {}

  // A few changes to one of the files.
  std::string mutate(const std::vector<std::string>& files) {
    std::string bytes = files[below(files.size())];
    for (std::size_t changes = 1 + below(4); changes > 0; changes--) change(bytes);
    return bytes;
  }

  // Pieces of a header, mostly in an order that makes sense.
  std::string header() {
    std::string text = "{";
    for (std::size_t i = below(4); i > 0; i--) {
      text += R"(")" + std::string(1, static_cast<char>('a' + below(3))) + R"(":{"dtype":")" + pick(kDTypes) +
              R"(","shape":[)" + pick(kNumbers) + R"(],"data_offsets":[)" + pick(kNumbers) + "," +
              pick(kNumbers) + "]}" + (i > 1 ? "," : "");
    }
    return text + "}";
  }

  std::size_t below(std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random_); }

 private:
  static constexpr const char* kDTypes[] = {"U8", "BOOL", "F16", "F64", "F8_E5M2", ""};
  static constexpr const char* kNumbers[] = {
      "0", "1", "2", "4", "8", "16", "-1", "1e3", "18446744073709551615", "9223372036854775808", ""};
  static constexpr const char* kTokens[] = {"\"", "{",  "}",    "[",    "]",       ",",
                                            ":",  "\\", "null", "\xff", "\\u0000", "0"};

  template <std::size_t n>
  const char* pick(const char* const (&choices)[n]) {
    return choices[below(n)];
  }

  void change(std::string& bytes) {
    if (bytes.empty()) return;
    std::size_t at = below(bytes.size()), length = 1 + below(std::min<std::size_t>(bytes.size() - at, 16));
    switch (below(6)) {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case 1:
        bytes[at] = static_cast<char>(below(256));
        break;
      case 2:
        bytes.resize(at);
        break;
      case 3:
        bytes.erase(at, length);
        break;
      case 4:
        bytes.insert(at, bytes.substr(below(bytes.size()), length));
        break;
      default:
        bytes.insert(at, pick(kTokens));
    }
  }

  std::mt19937 random_;
};

std::string escaped(const std::string& bytes) {
  std::string text;
  for (char c : bytes) text += c >= ' ' && c <= '~' ? std::string(1, c) : fmt::format("\\x{:02x}", c);
  return text;
}

// Counts the files that were read.
int read_many(std::uint32_t seed, const std::function<std::string(Mutator&)>& make,
              const std::function<void(const fs::path&)>& read) {
  constexpr int kFiles = 1500;
  Mutator mutator(seed);
  Folder folder;
  int fine = 0;
  for (int i = 0; i < kFiles; i++) {
    std::string bytes = make(mutator);
    // Each a file of its own: to truncate one and write it again is slow on some file systems.
    fs::path path = folder.write(std::to_string(i), bytes);
    try {
      read(path);
      fine++;
    } catch (const FileError& e) {
      EXPECT_NE(std::string(e.what()).find(path.string()), std::string::npos) << e.what();
    } catch (const std::exception& e) {
      ADD_FAILURE() << "file " << i << " of seed " << seed << ": " << e.what() << "\n" << escaped(bytes);
    }
    fs::remove(path);
  }
  return fine;
}

void read_safetensors(const fs::path& path) {
  std::size_t size = fs::file_size(path), at = 0;
  SafeHeader header = safe_load_metadata(path);
  for (const SafeHeader::Entry& entry : header.tensors) {
    EXPECT_TRUE(at == 0 || entry.begin == at);
    EXPECT_EQ(entry.end - entry.begin, static_cast<std::size_t>(entry.shape.numel()) * itemsize(entry.dtype));
    at = entry.end;
  }
  EXPECT_LE(at, size);
  EXPECT_EQ(safe_load(path).size(), header.tensors.size());
}

TEST(Fuzz, SafetensorsChanged) {
  std::vector<std::string> files{
      safetensors(R"({"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},)"
                  R"("b":{"dtype":"BOOL","shape":[],"data_offsets":[8,9]},"__metadata__":{"k":"v"}}  )",
                  "abcdefgh\1"),
      safetensors(R"({"long.name":{"dtype":"I16","shape":[0],"data_offsets":[0,0]}})", "")};
  int fine = read_many(1, [&](Mutator& m) { return m.mutate(files); }, read_safetensors);
  EXPECT_GT(fine, 5);  // changes of names and of data
}

TEST(Fuzz, SafetensorsMadeUp) {
  int fine = read_many(
      2, [&](Mutator& m) { return safetensors(m.header(), std::string(m.below(10), '\1')); },
      read_safetensors);
  EXPECT_GT(fine, 20);
}

TEST(Fuzz, Idx) {
  std::string plain = "\0\0\x0b\x02\0\0\0\x02\0\0\0\x03"s + "abcdefghijkl";
  int fine = read_many(
      3, [&](Mutator& m) { return m.mutate({plain, gzip(plain)}); },
      [](const fs::path& path) { idx_load(path); });
  EXPECT_GT(fine, 50);
}

}  // namespace
}  // namespace pg::formats
