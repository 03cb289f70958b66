// Safetensors files: what comes back, the bytes written, and each way in which a file can be wrong.
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "formats/files.h"
#include <pangrad/safetensors.h>

namespace pg::formats {
namespace {

using namespace std::string_literals;

TEST(Safetensors, WhatIsSavedComesBack) {
  Folder folder;
  StateDict saved{
      {"flags", Tensor::of({true, false, true})},
      {"layer.bias", Tensor::of({1.5, -2.0}, {.dtype = f16})},
      {"layer.weight", Tensor::of({{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}})},
      {"view", Tensor::arange(6).reshape({2, 3}).T()},
      {"none", Tensor::ones({0, 3})},
      {"one", Tensor::of(std::int64_t{1} << 40)},
      {"\"quoted\" \xc3\xa4", Tensor::of({2.5}, {.dtype = f64})},
  };
  fs::path path = folder / "x.safetensors";
  safe_save(saved, path, {{"format", "pt"}, {"note", "\n"}});
  EXPECT_EQ(folder.count(), 1u);
  StateDict loaded = safe_load(path);
  ASSERT_EQ(loaded.size(), saved.size());
  for (const auto& [name, tensor] : saved) {
    ASSERT_TRUE(loaded.contains(name)) << name;
    const Tensor& other = loaded.at(name);
    EXPECT_EQ(other.dtype(), tensor.dtype()) << name;
    EXPECT_EQ(other.shape(), tensor.shape()) << name;
    EXPECT_EQ(other.cast(f64).to_vector<double>(), tensor.cast(f64).to_vector<double>()) << name;
  }
  SafeHeader header = safe_load_metadata(path);
  EXPECT_EQ(header.metadata, (Metadata{{"format", "pt"}, {"note", "\n"}}));
  EXPECT_EQ(header.tensors.size(), saved.size());
  for (const SafeHeader::Entry& entry : header.tensors) EXPECT_EQ(entry.begin % itemsize(entry.dtype), 0u);
}

TEST(Safetensors, TheBytesAreThoseOfTheFormat) {
  Folder folder;
  safe_save({{"b", Tensor::of({1.f})}, {"a", Tensor::of({std::uint8_t{7}})}}, folder / "x");
  std::string header = R"({"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                       R"("a":{"dtype":"U8","shape":[1],"data_offsets":[4,5]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  EXPECT_EQ(contents(folder / "x"), safetensors(header, "\0\0\x80\x3f\x07"s));
}

TEST(Safetensors, SavingReplacesAsAWhole) {
  Folder folder;
  fs::path path = folder.write("x", "old");
  EXPECT_THROW(safe_save({{"__metadata__", Tensor::ones({1})}}, path), ValueError);
  EXPECT_THROW(safe_save({{"\xff", Tensor::ones({1})}}, path), ValueError);
  EXPECT_THROW(safe_save({{"a", Tensor()}}, path), ValueError);
  EXPECT_EQ(contents(path), "old");
  safe_save({{"a", Tensor::ones({1})}}, path);
  EXPECT_EQ(safe_load(path).at("a").item<float>(), 1);
  EXPECT_EQ(folder.count(), 1u);
}

TEST(Safetensors, WhereItCannotBeWritten) {
  Folder folder;
  fs::path path = folder / "none/x";
  EXPECT_EQ(file_error(path, [&] { safe_save({{"a", Tensor::ones({1})}}, path); }),
            "cannot be written: No such file or directory");
  fs::create_directory(folder / "folder");
  fs::path taken = folder / "folder";
  EXPECT_EQ(file_error(taken, [&] { safe_save({{"a", Tensor::ones({1})}}, taken); }),
            "cannot be replaced: Is a directory");
  EXPECT_EQ(folder.count(), 1u);
  fs::path full = "/dev/full/x";
  EXPECT_NE(file_error(full, [&] { safe_save({}, full); }), "no FileError");
}

TEST(Safetensors, AnEmptyFileOfTensors) {
  Folder folder;
  safe_save({}, folder / "x");
  EXPECT_TRUE(safe_load(folder / "x").empty());
  EXPECT_TRUE(safe_load(folder.write("y", safetensors("{}", ""))).empty());
}

std::string error_of(const std::string& bytes) {
  Folder folder;
  fs::path path = folder.write("x", bytes);
  std::string header = file_error(path, [&] { safe_load_metadata(path); });
  EXPECT_EQ(file_error(path, [&] { safe_load(path); }), header);
  return header;
}

// A header of one tensor of four bytes, with `now` in place of `was`.
std::string changed(std::string_view was, std::string_view now) {
  std::string header = R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})";
  header.replace(header.find(was), was.size(), now);
  return safetensors(header, "abcd");
}

// Each tensor is read when it is used; what the header says wrong is found at once all the same.
TEST(Safetensors, LazilyFromTheFile) {
  Folder folder;
  fs::path path = folder / "lazy.safetensors";
  safe_save({{"a", Tensor::of({1.f, 2.f, 3.f})},
             {"b", Tensor::of({7, 8}).reshape({2, 1})},
             {"flags", Tensor::of({true, false})},
             {"none", Tensor::zeros({0, 3})}},
            path);
  StateDict lazy = safe_load(path, {.lazy = true});
  EXPECT_EQ(lazy.size(), 4u);
  EXPECT_EQ(lazy.at("a").device(), "CPU");
  EXPECT_EQ(lazy.at("a").to_vector<float>(), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ((lazy.at("b") * 2).to_vector<int>(), (std::vector<int>{14, 16}));
  EXPECT_EQ(lazy.at("flags").to_vector<bool>(), (std::vector<bool>{true, false}));
  // A copy: the file stays as it is.
  lazy.at("a").assign(0).realize();
  EXPECT_EQ(safe_load(path).at("a").to_vector<float>(), (std::vector<float>{1, 2, 3}));
  // What was not read yet misses its file.
  StateDict late = safe_load(path, {.lazy = true});
  fs::resize_file(path, 16);
  EXPECT_THROW(late.at("a").realize(), FileError);
  EXPECT_THROW(safe_load(path, {.lazy = true}), FileError);
}

TEST(Safetensors, TruncatedFiles) {
  std::string whole = changed("a", "a");  // 8 + 53 + 4 bytes
  EXPECT_EQ(error_of(""), "is truncated: ends at byte 0, within the length of the header");
  EXPECT_EQ(error_of(whole.substr(0, 7)), "is truncated: ends at byte 7, within the length of the header");
  EXPECT_EQ(error_of(whole.substr(0, 60)), "is truncated: ends at byte 60, within the header up to byte 61");
  EXPECT_EQ(error_of(whole.substr(0, 64)), "is truncated: ends at byte 64, within \"a\" up to byte 65");
  EXPECT_EQ(error_of(whole + "x"), "goes on after its last tensor, which ends at byte 65");
  EXPECT_EQ(error_of("\xff\xff\xff\xff\xff\xff\xff\xff"s),
            "is no safetensors file: bytes 0 to 8 give a header of 18446744073709551615 bytes");
}

TEST(Safetensors, HeadersThatAreNoJson) {
  EXPECT_EQ(error_of(safetensors("", "")), "the header is malformed at byte 8: this is no JSON");
  EXPECT_EQ(error_of(changed(R"("a":)", R"("a";)")), "the header is malformed at byte 12: this is no JSON");
  EXPECT_EQ(error_of(changed("}}", "}")), "the header is malformed at byte 60: this is no JSON");
  EXPECT_EQ(error_of(changed("}}", "}} x")), "the header is malformed at byte 62: this is no JSON");
  EXPECT_EQ(error_of(changed(R"("a")", "\"\xff\"")), "the header is malformed at byte 10: this is no JSON");
  EXPECT_NE(error_of(safetensors(std::string(1 << 20, '['), "")), "no FileError");
}

TEST(Safetensors, HeadersOfAnotherForm) {
  EXPECT_EQ(error_of(safetensors("[]", "")),
            "the header is malformed at byte 8: not an object, as there should be");
  EXPECT_EQ(error_of(safetensors(R"({"a":null})", "")),
            "the header is malformed at byte 13: not an object, as there should be");
  EXPECT_EQ(error_of(safetensors(R"({"__metadata__":{"a":"b\"","c":-12}})", "")),
            "the header is malformed at byte 39: not a string, as there should be");
  EXPECT_EQ(error_of(safetensors(R"({"__metadata__":{"a":"","a":""}})", "")),
            "the header is malformed at byte 32: the metadata \"a\" again");
  EXPECT_EQ(error_of(changed(R"("U8")", "8")),
            "the header is malformed at byte 22: not a string, as there should be");
  EXPECT_EQ(error_of(changed("[4]", R"("4\"")")),
            "the header is malformed at byte 35: not a list, as there should be");
  EXPECT_EQ(error_of(changed("[4]", "[2.5]")),
            "the header is malformed at byte 36: not a number of at least 0, as there should be");
  EXPECT_EQ(error_of(changed("[4]", "[-4]")),
            "the header is malformed at byte 36: not a number of at least 0, as there should be");
  EXPECT_EQ(error_of(changed("[0,4]", "[0]")),
            "the header is malformed at byte 54: data_offsets of \"a\" are not two");
  EXPECT_EQ(error_of(changed("[0,4]", "[0,4,4]")),
            "the header is malformed at byte 59: not two numbers of at least 0, as there should be");
  EXPECT_EQ(error_of(changed(R"("shape":[4],)", "")),
            "the header is malformed at byte 13: \"a\" has no shape");
  EXPECT_EQ(error_of(changed(R"("shape")", R"("dtype")")),
            "the header is malformed at byte 27: \"dtype\" again");
  EXPECT_EQ(error_of(changed(R"("shape")", R"("form")")),
            "the header is malformed at byte 27: \"form\" is not known here");
  std::string twice = R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"\u0061":{}})";
  EXPECT_EQ(error_of(safetensors(twice, "")), "the header is malformed at byte 61: the name \"a\" again");
}

TEST(Safetensors, TensorsThatCannotBe) {
  EXPECT_EQ(error_of(changed("U8", "F8_E4M3")),
            "\"a\" has the dtype \"F8_E4M3\" (byte 22), which is not supported");
  EXPECT_EQ(error_of(changed("[4]", "[5]")),
            "\"a\" has data_offsets 0 and 4 (byte 54), but its dtype and shape take 5 bytes");
  EXPECT_EQ(error_of(changed("[0,4]", "[4,0]")),
            "\"a\" has data_offsets 4 and 0 (byte 54), but its dtype and shape take 4 bytes");
  EXPECT_EQ(error_of(changed("[4]", "[4294967296,4294967296]")),
            "\"a\" has a shape (byte 35) of more data than can be");
  EXPECT_EQ(error_of(changed("[4]", "[18446744073709551615,0]")),
            "\"a\" has a shape (byte 35) of more data than can be");
  auto two = [](const char* first, const char* second) {
    std::string header = R"({"a":{"dtype":"U8","shape":[2],"data_offsets":)"s + first +
                         R"(},"b":{"dtype":"U8","shape":[2],"data_offsets":)" + second + "}}";
    return error_of(safetensors(header, "abcd"));
  };
  EXPECT_EQ(two("[0,2]", "[2,4]"), "no FileError");
  EXPECT_EQ(two("[2,4]", "[0,2]"), "no FileError");
  EXPECT_EQ(two("[0,2]", "[1,3]"), "\"b\" begins at byte 114, before byte 115, where another tensor ends");
  EXPECT_EQ(two("[0,2]", "[3,5]"), "\"b\" begins at byte 116, but nothing is at byte 115");
}

TEST(Safetensors, BoolsAreZeroOrOne) {
  Folder folder;
  fs::path path = folder.write(
      "x", safetensors(R"({"a":{"dtype":"BOOL","shape":[2],"data_offsets":[0,2]}})", "\x01\x02"));
  EXPECT_EQ(file_error(path, [&] { safe_load(path); }), "\"a\" is bool, but byte 64 is 2");
}

}  // namespace
}  // namespace pg::formats
