// The trace: what a pass did can be read back from the file, and a damaged file is refused with its place.
#include "rewrite/trace.h"

#include <cstdio>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/flags.h"
#include "ir/build.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "rewrite/rewrite.h"
#include <pangrad/log.h>

namespace pg {
namespace {

using namespace pat;

constexpr Rule kDouble[] = {rule(x + x, x * 2)};
constexpr int kDoubleLine = __LINE__ - 1;

// A file of this test's own, gone at its end.
class TempFile {
 public:
  TempFile()
      : path_((std::filesystem::temp_directory_path() / ("pangrad_trace_" + std::to_string(::getpid())))
                  .string()) {
    std::remove(path_.c_str());
  }
  ~TempFile() {
    stop_trace();
    std::remove(path_.c_str());
  }
  TempFile(const TempFile&) = delete;
  TempFile& operator=(const TempFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST(Trace, TheLogNamesTheRulesThatFired) {
  std::vector<std::string> lines;
  set_log_sink([&](LogLevel level, std::string_view message) {
    if (level == LogLevel::Rewrites) lines.emplace_back(message);
  });
  {
    GraphScope scope;
    Ref n = var("n", 0, 9), graph = n + n;
    {
      ScopedFlag debug("DEBUG", 5);
      rewrite(graph, kDouble, {.name = "quiet"});
    }
    ScopedFlag debug("DEBUG", 6);
    Ref result = rewrite(graph, kDouble, {.name = "double"});
    rewrite(result, kDouble, {.name = "again"});  // nothing fires, nothing is said
  }
  set_log_sink(nullptr);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].substr(0, 8), "double: ");
  std::string rule = "\n  1 x tests/rewrite/trace_test.cpp:" + std::to_string(kDoubleLine);
  EXPECT_TRUE(lines[0].ends_with(rule)) << lines[0];
}

TEST(Trace, APassCanBeReadBack) {
  TempFile file;
  std::string before, after;
  {
    GraphScope scope;
    Ref n = var("n", 0, 9), graph = (n + n) * (n + n);
    start_trace(file.path());
    Ref result = rewrite(graph, kDouble, {.name = "double"});
    rewrite(result, kDouble, {.name = "again"});
    stop_trace();
    rewrite(graph, kDouble, {.name = "untraced"});
    before = print(graph);
    after = print(result);
  }
  auto passes = read_trace(file.path());
  ASSERT_EQ(passes.size(), 2u);
  EXPECT_EQ(passes[0].name, "double");
  EXPECT_EQ(passes[0].before, before);
  EXPECT_EQ(passes[0].after, after);
  EXPECT_GT(passes[0].nodes, 2u);
  EXPECT_GE(passes[0].attempts, 1u);
  EXPECT_GE(passes[0].seconds, 0);
  ASSERT_EQ(passes[0].fired.size(), 1u);
  EXPECT_EQ(passes[0].fired[0].file, "tests/rewrite/trace_test.cpp");
  EXPECT_EQ(passes[0].fired[0].line, static_cast<std::uint32_t>(kDoubleLine));
  EXPECT_EQ(passes[0].fired[0].count, 1u);
  EXPECT_EQ(passes[1].name, "again");
  EXPECT_EQ(passes[1].before, passes[1].after);
  EXPECT_TRUE(passes[1].fired.empty());
  GraphScope scope;
  EXPECT_EQ(print(parse(passes[0].after)), after);
}

TEST(Trace, TheSummaryAddsUpByName) {
  std::vector<TracedPass> passes{
      {.name = "fast",
       .seconds = 1e-3,
       .nodes = 3,
       .attempts = 5,
       .fired = {{"src/a.cpp", 7, 2}},
       .before = "1\n",
       .after = "2\n"},
      {.name = "slow", .seconds = 2.5, .nodes = 10, .attempts = 50, .before = "n\n", .after = "n\n"},
      {.name = "fast",
       .seconds = 2e-3,
       .nodes = 4,
       .attempts = 6,
       .fired = {{"src/a.cpp", 7, 1}, {"src/b.cpp", 1, 9}}}};
  EXPECT_EQ(trace_summary(passes),
            "      time    runs      nodes      tried    fired  pass\n"
            "    2.50 s       1         10         50        0  slow\n"
            "   3.00 ms       2          7         11       12  fast\n"
            "\n"
            "   fired  rule\n"
            "       9  src/b.cpp:1\n"
            "       3  src/a.cpp:7\n");
  EXPECT_EQ(trace_listing(std::span(passes).first(2)),
            "--- fast: 1.00 ms, 3 nodes, 5 tried, 2 fired\n# 2 x src/a.cpp:7\n1\n=>\n2\n"
            "--- slow: 2.50 s, 10 nodes, 50 tried, 0 fired\nn\n=> unchanged\n");
  EXPECT_EQ(trace_listing(passes, "none"), "");
}

TEST(Trace, ADamagedFileIsRefusedAndAnUnfinishedLineLeftOut) {
  TempFile file;
  const std::string good =
      R"({"pass":"p","seconds":0.1,"nodes":1,"attempts":2,"fired":[{"rule":"a.cpp:3","count":4}],"before":"1\n"})";
  auto write = [&](const std::string& text) { std::ofstream(file.path()) << text; };
  write(good + "\n" + good.substr(0, 40));
  EXPECT_EQ(read_trace(file.path()).size(), 1u);
  for (
      std::string_view bad :
      {"{}", "[1]", "nonsense", R"({"pass":1})",
       R"({"pass":"p","seconds":0,"nodes":1,"attempts":2,"fired":[{"rule":"x","count":1}],"before":""})",
       R"({"pass":"p","seconds":0,"nodes":1,"attempts":2,"fired":[{"rule":"x:99999999999999999999","count":1}],"before":""})"}) {
    write(good + "\n" + std::string(bad) + "\n");
    try {
      read_trace(file.path());
      ADD_FAILURE() << bad;
    } catch (const FileError& e) {
      EXPECT_NE(std::string(e.what()).find("at byte " + std::to_string(good.size() + 1)), std::string::npos)
          << e.what();
    }
  }
  EXPECT_THROW(read_trace(file.path() + ".none"), FileError);
  EXPECT_THROW(start_trace("/nowhere/at/all"), FileError);
}

}  // namespace
}  // namespace pg
