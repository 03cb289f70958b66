// Every case of tests/text/*.txt is a test: Text/Case.Holds/<file>_<line>. See README.md beside this file.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <ostream>

#include <gtest/gtest.h>
#include <unistd.h>

#include "text/cases.h"
#include <pangrad/error.h>

namespace pg::text_test {

void PrintTo(const Case& c, std::ostream* out) { *out << c.file << ':' << c.line << " \"" << c.title << '"'; }

namespace {

std::vector<Case> all_cases() {
  std::vector<std::string> files;
  for (auto& entry : std::filesystem::directory_iterator(std::filesystem::path(PG_SOURCE_DIR) / "tests/text"))
    if (entry.path().extension() == ".txt") files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  std::vector<Case> cases;
  for (const std::string& file : files)
    for (Case& c : read_cases(file)) cases.push_back(std::move(c));
  return cases;
}

class TextCase : public testing::TestWithParam<Case> {};

TEST_P(TextCase, Holds) {
  const Case& c = GetParam();
  std::string wrong;
  try {
    wrong = run(c);
  } catch (const Error& e) {
    wrong = e.what();
  }
  if (!wrong.empty())
    ADD_FAILURE_AT(c.file.c_str(), c.claim_line ? c.claim_line : c.line) << '"' << c.title << "\": " << wrong;
}

INSTANTIATE_TEST_SUITE_P(Text, TextCase, testing::ValuesIn(all_cases()),
                         [](const testing::TestParamInfo<Case>& info) {
                           return std::filesystem::path(info.param.file).stem().string() + "_" +
                                  std::to_string(info.param.line);
                         });

// The runner itself: what is wrong with a case or a claim is found.
std::string run_text(const std::string& text) {
  auto path =
      std::filesystem::temp_directory_path() / ("pangrad_text_" + std::to_string(::getpid()) + ".txt");
  std::ofstream(path) << text;
  auto cases = read_cases(path.string());
  std::filesystem::remove(path);
  return cases.size() == 1 ? run(cases[0]) : std::to_string(cases.size()) + " cases";
}

TEST(TextRunner, FindsWhatIsWrong) {
  EXPECT_EQ(run_text("n = Var[\"n\"](1, 9)\n--- t\nn*2 + 1\n==\n1 + n*2\n"), "");
  EXPECT_EQ(run_text("n = Var[\"n\"](1, 9)\n--- t\nn\n=/=\nn + 1\n"), "");
  EXPECT_EQ(run_text("--- t\n1 + 2\n==\n4\n").substr(0, 19), "the claim is false:");
  EXPECT_EQ(run_text("--- t\n1 + 2\n=/=\n3\n"), "both become\n3\n");
  EXPECT_EQ(run_text("--- t\n1\n=! kernel the root is a Sink\n"), "");
  EXPECT_EQ(run_text("--- t\nSqrt(1)\n=! tensor made up\n").substr(0, 26), "it is refused otherwise: [");
  EXPECT_EQ(run_text("--- t\nSqrt(\n=! parse found the end\n"), "");
  EXPECT_EQ(run_text("--- t\n1\n"), "there is no line that begins with =>, ==, =/= or =!");
  EXPECT_EQ(run_text("--- t\n=> symbolic\n1\n"), "there is no graph");
  EXPECT_EQ(run_text("--- t\n1\n==\n# nothing\n"), "there is no second graph");
  EXPECT_EQ(run_text("--- t\n1\n=> symbolic unchanged\n1\n"), "there is a second graph");
  EXPECT_EQ(run_text("--- t\n1\n==\n==\n1\n"), "it claims twice");
  EXPECT_EQ(run_text("1\n"), "the file holds no cases");
  EXPECT_THROW(run_text("--- t\n1\n=> made up\n1\n"), ValueError);
  try {
    run_text("--- t\n\n  n + 1\n==\n1\n");
    ADD_FAILURE();
  } catch (const ValueError& e) {
    EXPECT_STREQ(e.what(), "[parse] 3:3: nothing is named \"n\"");
  }
}

}  // namespace
}  // namespace pg::text_test
