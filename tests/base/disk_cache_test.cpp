// The disk cache: what it keeps, how it stays small, many users at once, and every way its file can be bad.
#include "base/disk_cache.h"

#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/flags.h"
#include "base/log.h"

namespace pg {
namespace {

namespace fs = std::filesystem;

Digest key(int64_t number) { return Digester().add(number).finish(); }

class DiskCacheTest : public testing::Test {
 protected:
  DiskCacheTest() {
    std::string name = (fs::temp_directory_path() / "pangrad-test-XXXXXX").string();
    folder = mkdtemp(name.data());
    path = folder / "deep" / "cache.db";
  }
  ~DiskCacheTest() override { fs::remove_all(folder); }

  void write(const fs::path& file, std::string_view text) {
    fs::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << text;
  }

  // Runs SQL on the file, as another program would.
  void sql(const std::string& text) {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 1000);
    EXPECT_EQ(sqlite3_exec(db, text.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(db);
    sqlite3_close(db);
  }

  fs::path folder;
  fs::path path;
};

TEST_F(DiskCacheTest, KeepsBytesByTableAndKey) {
  DiskCache cache(path.string());
  EXPECT_EQ(cache.get("kernels", key(1)), std::nullopt);
  cache.put("kernels", key(1), std::string_view("a\0b", 3));
  cache.put("beam", key(1), "");
  EXPECT_EQ(cache.get("kernels", key(1)), std::string("a\0b", 3));
  EXPECT_EQ(cache.get("beam", key(1)), "");
  EXPECT_EQ(cache.get("kernels", key(2)), std::nullopt);
  cache.put("kernels", key(1), "other");
  EXPECT_EQ(cache.get("kernels", key(1)), "other");
  EXPECT_EQ(cache.usage().entries, 2);
}

TEST_F(DiskCacheTest, OpensAtFirstUseAndLastsBeyondItsProcess) {
  {
    DiskCache cache(path.string());
    EXPECT_FALSE(fs::exists(path));
    cache.put("t", key(1), "kept");
    EXPECT_TRUE(fs::exists(path));
  }
  EXPECT_EQ(DiskCache(path.string()).get("t", key(1)), "kept");
}

TEST_F(DiskCacheTest, StaysBelowItsCapAndDropsTheOldest) {
  constexpr int64_t kCap = 1 << 20;
  DiskCache cache(path.string(), kCap);
  for (int i = 0; i < 300; i++) {
    cache.put("t", key(i), std::string(10000, static_cast<char>('a' + i % 26)));
    ASSERT_LE(cache.usage().bytes, kCap);
  }
  EXPECT_EQ(cache.get("t", key(0)), std::nullopt);
  EXPECT_EQ(cache.get("t", key(299)), std::string(10000, 'a' + 299 % 26));
  EXPECT_GT(cache.usage().bytes, kCap / 2);
  EXPECT_LE(static_cast<int64_t>(fs::file_size(path)), kCap + 100000);
}

TEST_F(DiskCacheTest, WhatIsTooLargeForTheCapIsNotKept) {
  DiskCache cache(path.string(), 1 << 20);
  cache.put("t", key(1), std::string(300000, 'x'));
  EXPECT_EQ(cache.get("t", key(1)), std::nullopt);
}

TEST_F(DiskCacheTest, UseKeepsAnEntryFromBeingTrimmed) {
  DiskCache cache(path.string());
  for (int i = 0; i < 16; i++) cache.put("t", key(i), std::string(100000, 'x'));
  sql("UPDATE entries SET used = used - 7200");
  EXPECT_TRUE(cache.get("t", key(0)));
  cache.trim(500000);
  EXPECT_LE(cache.usage().bytes, 500000);
  EXPECT_TRUE(cache.get("t", key(0)));
  EXPECT_FALSE(cache.get("t", key(1)));
  cache.trim(0);
  EXPECT_EQ(cache.usage().entries, 0);
}

TEST_F(DiskCacheTest, ADamagedEntryIsNotReturned) {
  DiskCache cache(path.string());
  cache.put("t", key(1), "right");
  cache.put("t", key(2), "other");
  sql("UPDATE entries SET value = 'wrong' WHERE value = CAST('right' AS BLOB)");
  EXPECT_EQ(cache.get("t", key(1)), std::nullopt);
  EXPECT_EQ(cache.get("t", key(2)), "other");
  EXPECT_EQ(cache.usage().entries, 1);
}

TEST_F(DiskCacheTest, AFileThatIsNoDatabaseIsSetAsideAndReplaced) {
  write(path, "these are a user's notes, and no database at all, though somebody pointed CACHEDB at them");
  DiskCache cache(path.string());
  cache.put("t", key(1), "kept");
  EXPECT_EQ(cache.get("t", key(1)), "kept");
  EXPECT_TRUE(fs::exists(path.string() + ".broken"));
}

TEST_F(DiskCacheTest, ADatabaseDamagedBeforeItIsOpenedIsReplaced) {
  {
    DiskCache cache(path.string());
    for (int i = 0; i < 100; i++) cache.put("t", key(i), std::string(5000, 'x'));
  }
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(100);
  file << std::string(fs::file_size(path) - 100, '\xee');
  file.close();
  DiskCache cache(path.string());
  for (int i = 0; i < 100; i++) cache.put("t", key(i), "new");
  for (int i = 0; i < 100; i++) cache.put("t", key(i), "new");
  EXPECT_EQ(cache.get("t", key(5)), "new");
}

TEST_F(DiskCacheTest, ADatabaseDamagedWhileOpenIsReplaced) {
  DiskCache cache(path.string());
  for (int i = 0; i < 100; i++) cache.put("t", key(i), std::string(5000, 'x'));
  sql("PRAGMA wal_checkpoint(TRUNCATE)");
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file << std::string(fs::file_size(path), '\xee');
  file.close();
  sql("SELECT 1");
  for (int i = 0; i < 300; i++) cache.put("t", key(i), std::string(5000, 'y'));
  for (int i = 0; i < 300; i++) cache.put("t", key(i), "new");
  EXPECT_EQ(cache.get("t", key(299)), "new");
  EXPECT_EQ(DiskCache(path.string()).get("t", key(299)), "new");
}

TEST_F(DiskCacheTest, AnotherProgramsDatabaseIsLeftAlone) {
  fs::create_directories(path.parent_path());
  sql("CREATE TABLE bookmarks(name TEXT); INSERT INTO bookmarks VALUES('precious')");
  auto before = fs::file_size(path);
  DiskCache cache(path.string());
  cache.put("t", key(1), "x");
  EXPECT_EQ(cache.get("t", key(1)), std::nullopt);
  EXPECT_EQ(fs::file_size(path), before);
  EXPECT_FALSE(fs::exists(path.string() + ".broken"));
}

TEST_F(DiskCacheTest, APathThatCannotBeOpenedIsSilentUnlessAsked) {
  write(folder / "file", "");
  fs::create_directories(folder / "directory");
  for (const fs::path& bad :
       {folder / "file" / "cache.db", folder / "directory", fs::path("/proc/none/cache.db")}) {
    std::vector<std::string> lines;
    set_log_sink([&](LogLevel, std::string_view message) { lines.emplace_back(message); });
    {
      DiskCache quiet(bad.string());
      quiet.put("t", key(1), "x");
    }
    EXPECT_TRUE(lines.empty());
    ScopedFlag debug("DEBUG", 1);
    DiskCache cache(bad.string());
    cache.put("t", key(1), "x");
    EXPECT_EQ(cache.get("t", key(1)), std::nullopt);
    EXPECT_EQ(cache.usage().entries, 0);
    cache.trim(0);
    set_log_sink(nullptr);
    ASSERT_EQ(lines.size(), 1u) << bad;
    EXPECT_NE(lines[0].find(bad.string() + " is not used: "), std::string::npos) << lines[0];
  }
}

// Runs a function in a child; false if it fails or the child dies.
template <typename Function>
bool in_child(Function&& function) {
  pid_t child = fork();
  if (child == 0) _exit(function() ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST_F(DiskCacheTest, AReadOnlyFileDisablesIt) {
  {
    DiskCache cache(path.string());
    cache.put("t", key(1), "x");
  }
  chmod(path.c_str(), 0444);
  chmod(path.parent_path().c_str(), 0555);
  chmod(folder.c_str(), 0755);
  EXPECT_TRUE(in_child([&] {
    if (geteuid() == 0 && seteuid(65534) != 0) return false;  // root may write anything
    DiskCache cache(path.string());
    cache.put("t", key(2), "y");
    return !cache.get("t", key(2));
  }));
  chmod(path.parent_path().c_str(), 0755);
}

TEST_F(DiskCacheTest, ThreadsShareIt) {
  DiskCache cache(path.string());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; i++) {
        cache.put("t", key(t * 1000 + i), std::to_string(i));
        EXPECT_EQ(cache.get("t", key(t * 1000 + i)), std::to_string(i));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(cache.usage().entries, 200);
}

TEST_F(DiskCacheTest, ProcessesShareItFromItsCreationOn) {
  std::vector<pid_t> children;
  for (int c = 0; c < 4; c++) {
    pid_t child = fork();
    if (child == 0) {
      DiskCache cache(path.string());
      for (int i = 0; i < 50; i++) cache.put("t", key(c * 1000 + i), "of a child");
      _exit(0);
    }
    children.push_back(child);
  }
  for (pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(DiskCache(path.string()).usage().entries, 200);
}

TEST_F(DiskCacheTest, ParentAndChildGoOnAfterAFork) {
  DiskCache cache(path.string());
  cache.put("t", key(1), "before");
  EXPECT_TRUE(in_child([&] {
    bool seen = cache.get("t", key(1)) == "before";
    cache.put("t", key(2), "of the child");
    return seen;
  }));
  cache.put("t", key(3), "of the parent");
  EXPECT_EQ(cache.get("t", key(1)), "before");
  EXPECT_EQ(cache.get("t", key(2)), "of the child");
  EXPECT_EQ(cache.get("t", key(3)), "of the parent");
}

TEST_F(DiskCacheTest, TheFlagsChooseTheFile) {
  ScopedFlag on("CACHE", 2);
  ScopedFlag root("XDG_CACHE_HOME", folder.string());
  {
    ScopedFlag no_file("CACHEDB", "");
    disk_cache().put("t", key(1), "x");
    EXPECT_TRUE(fs::exists(folder / "pangrad" / "cache.db"));
    ScopedFlag relative("XDG_CACHE_HOME", "relative");
    ScopedFlag home("HOME", folder.string());
    disk_cache().put("t", key(1), "x");
    EXPECT_TRUE(fs::exists(folder / ".cache" / "pangrad" / "cache.db"));
  }
  ScopedFlag file("CACHEDB", path.string());
  EXPECT_EQ(disk_cache().get("t", key(1)), std::nullopt);
  disk_cache().put("t", key(1), "y");
  EXPECT_EQ(disk_cache().get("t", key(1)), "y");
  ScopedFlag off("CACHE", 1);
  EXPECT_EQ(disk_cache().get("t", key(1)), std::nullopt);
}

}  // namespace
}  // namespace pg
