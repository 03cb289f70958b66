// IDX files, plain and compressed: what they hold, and where they are wrong.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "formats/files.h"
#include <pangrad/datasets.h>

namespace pg::formats {
namespace {

using namespace std::string_literals;

// Two rows of three bytes.
const std::string kBytes = "\0\0\x08\x02\0\0\0\x02\0\0\0\x03"s + "\x01\x02\x03\x04\x05\x06"s;

TEST(Idx, ReadsPlainAndCompressed) {
  Folder folder;
  std::string two = gzip(kBytes.substr(0, 10)) + gzip(kBytes.substr(10));
  for (const std::string& bytes : {kBytes, gzip(kBytes), two}) {
    Tensor x = idx_load(folder.write("x", bytes));
    EXPECT_EQ(x.dtype(), u8);
    EXPECT_EQ(x.shape(), (Shape{2, 3}));
    EXPECT_EQ(x.to_vector<std::uint8_t>(), (std::vector<std::uint8_t>{1, 2, 3, 4, 5, 6}));
  }
}

TEST(Idx, HighBytesComeFirst) {
  Folder folder;
  Tensor shorts = idx_load(folder.write("a", "\0\0\x0b\x01\0\0\0\x02\x01\x02\xff\xff"s));
  EXPECT_EQ(shorts.to_vector<std::int16_t>(), (std::vector<std::int16_t>{258, -1}));
  Tensor number = idx_load(folder.write("b", "\0\0\x0d\x00\x40\x20\0\0"s));
  EXPECT_EQ(number.item<float>(), 2.5f);
  EXPECT_EQ(idx_load(folder.write("c", "\0\0\x0e\x01\0\0\0\0"s)).shape(), Shape{0});
}

TEST(Idx, SaysWhereItIsWrong) {
  Folder folder;
  auto error = [&](const std::string& bytes) {
    fs::path path = folder.write("x", bytes);
    return file_error(path, [&] { idx_load(path); });
  };
  EXPECT_EQ(error(""), "is truncated: ends at byte 0, within the header of an IDX file up to byte 4");
  EXPECT_EQ(error("PK\x03\x04"), "is no IDX file: bytes 0 and 1 are 80 and 75, not 0");
  EXPECT_EQ(error("\0\0\x07\x01"s), "byte 2 is no code of a type: 0x07");
  EXPECT_EQ(error(kBytes.substr(0, 9)), "is truncated: ends at byte 9, within the extents up to byte 12");
  EXPECT_EQ(error(kBytes.substr(0, 15)),
            "is truncated: the header promises data up to byte 18, the file holds at most 15");
  EXPECT_EQ(error(kBytes + "x"), "goes on after its data, which ends at byte 18");
  EXPECT_EQ(error("\0\0\x08\x03\xff\xff\xff\xff\xff\xff\xff\xff\0\0\0\x01"s),
            "the extents up to byte 12 are those of more data than can be");
}

TEST(Idx, SaysWhereCompressedDataAreWrong) {
  Folder folder;
  auto error = [&](const std::string& bytes) {
    fs::path path = folder.write("x.gz", bytes);
    return file_error(path, [&] { idx_load(path); });
  };
  std::string packed = gzip(kBytes), cut = gzip(kBytes.substr(0, 15));
  EXPECT_EQ(error(packed.substr(0, 5)),
            "is truncated: the compressed data ends at byte 5, within its contents at byte 0");
  EXPECT_EQ(error(packed.substr(0, packed.size() - 2)), "is truncated: the compressed data ends at byte " +
                                                            std::to_string(packed.size() - 2) +
                                                            ", within its contents at byte 18");
  EXPECT_EQ(error(cut), "is truncated: ends at byte 15, within data up to byte 18");
  EXPECT_EQ(error(gzip(kBytes + "x")), "goes on after its data, which ends at byte 18");
  packed[packed.size() - 6] ^= 1;  // of the checksum
  EXPECT_NE(error(packed).find("is damaged at byte"), std::string::npos) << error(packed);
  // A small file that promises the most a header can.
  std::string promise = "\0\0\x08\x02\0\x10\0\0\0\x10\0\0"s;
  EXPECT_NE(error(gzip(promise)).find("the header promises data up to byte 1099511627788"),
            std::string::npos);
}

TEST(Idx, MissingFilesAndFolders) {
  Folder folder;
  fs::path none = folder / "none";
  EXPECT_EQ(file_error(none, [&] { idx_load(none); }), "cannot be opened: No such file or directory");
  fs::path self = folder / ".";
  EXPECT_EQ(file_error(self, [&] { idx_load(self); }), "is no regular file");
}

}  // namespace
}  // namespace pg::formats
