// DISK: files as memory, and errors that name the file and the place in it.
#include <cstring>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

#include "runtime/device.h"
#include <pangrad/error.h>

namespace pg::runtime {
namespace {

namespace fs = std::filesystem;

class DiskDeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    path_ = fs::temp_directory_path() /
            (std::string("pangrad-disk-") + test->name() + "-" + std::to_string(getpid()));
    fs::remove(path_);
  }
  void TearDown() override { fs::remove(path_); }

  void write_file(const std::string& text) { std::ofstream(path_) << text; }
  std::string read_file() {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  Device& disk() { return device("DISK:" + path_.string()); }

  fs::path path_;
};

std::string text_of(const Buffer& buffer) {
  std::string text(buffer.bytes, 0);
  buffer.device().copy_out(text.data(), buffer);
  return text;
}

TEST_F(DiskDeviceTest, ContentsAreTheFile) {
  write_file("hello, disk");
  const Buffer file = disk().contents();
  EXPECT_EQ(file.bytes, 11U);
  EXPECT_TRUE(file.allocation->writable());
  EXPECT_EQ(text_of(file), "hello, disk");
  EXPECT_EQ(text_of(file.slice(7, 4)), "disk");
  EXPECT_EQ(std::memcmp(file.host(), "hello", 5), 0) << "mapped, too";
  EXPECT_THROW(file.slice(8, 4), IndexError);
}

TEST_F(DiskDeviceTest, CopiesToAndFromOtherDevices) {
  write_file("0123456789");
  const Buffer memory = device("CPU").allocate(4);
  copy(memory, disk().contents().slice(3, 4));
  EXPECT_EQ(text_of(memory), "3456");
  copy(disk().contents().slice(0, 4), memory);
  EXPECT_EQ(read_file(), "3456456789");
  EXPECT_THROW(copy(memory, disk().contents()), ValueError);
}

TEST_F(DiskDeviceTest, AFileIsMappedIntoTheCpuWithoutACopy) {
  write_file("shared");
  const Buffer seen = device("CPU").map(disk().contents());
  EXPECT_EQ(text_of(seen), "shared");
  disk().copy_in(disk().contents().slice(0, 1), "S");
  EXPECT_EQ(text_of(seen), "Shared");
}

TEST_F(DiskDeviceTest, AllocatingMakesTheFile) {
  {
    const Buffer file = disk().allocate(5);
    disk().copy_in(file, "abcde");
    EXPECT_EQ(disk().memory().in_use, 5U);
    EXPECT_THROW(disk().allocate(6), FileError) << "in use with another length";
  }
  EXPECT_EQ(read_file(), "abcde");
  EXPECT_EQ(disk().memory().in_use, 0U);
  EXPECT_EQ(text_of(disk().allocate(7)), std::string("abcde\0\0", 7));
  EXPECT_EQ(disk().allocate(0).bytes, 0U);
  EXPECT_EQ(fs::file_size(path_), 0U);
  EXPECT_EQ(disk().contents().bytes, 0U);
}

TEST_F(DiskDeviceTest, AFileThatIsNotThereIsAnError) {
  try {
    disk().contents();
    FAIL();
  } catch (const FileError& error) {
    EXPECT_NE(std::string(error.what()).find(path_.string() + ": cannot open it"), std::string::npos)
        << error.what();
  }
  EXPECT_THROW(device("DISK:/tmp").contents(), FileError);
  EXPECT_THROW(device("DISK:/no/such/folder/file").allocate(1), FileError);
}

TEST_F(DiskDeviceTest, AFileThatBecameShorterIsAnErrorAndNotASignal) {
  write_file("0123456789");
  const Buffer file = disk().contents();
  fs::resize_file(path_, 4);
  try {
    text_of(file);
    FAIL();
  } catch (const FileError& error) {
    EXPECT_NE(std::string(error.what()).find("ends at byte 4"), std::string::npos) << error.what();
  }
}

TEST_F(DiskDeviceTest, AReadOnlyFileRefusesWrites) {
  write_file("fixed");
  fs::permissions(path_, fs::perms::owner_read | fs::perms::group_read | fs::perms::others_read);
  const uid_t user = geteuid();
  Buffer file;
  if (user == 0) ASSERT_EQ(seteuid(65534), 0);  // to root every file is writable
  EXPECT_NO_THROW(file = disk().contents());
  ASSERT_EQ(seteuid(user), 0);
  EXPECT_FALSE(file.allocation->writable());
  EXPECT_EQ(text_of(file), "fixed");
  EXPECT_THROW(disk().copy_in(file, "FIXED"), DeviceError);
}

TEST_F(DiskDeviceTest, NothingRunsThere) {
  EXPECT_THROW(disk().load({}), DeviceError);
  EXPECT_THROW(disk().compiler("c"), DeviceError);
}

}  // namespace
}  // namespace pg::runtime
