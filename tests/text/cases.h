// The cases of a text file, as README.md describes them.
#pragma once

#include <string>
#include <vector>

namespace pg::text_test {

struct Block {
  std::string text;
  int line = 1;
};
struct Case {
  enum Claim { Becomes, Unchanged, Same, Different, Refused } claim = Becomes;
  std::string file, title;
  int line = 0;  // of the title
  int claim_line = 0;
  std::string pass;     // rule sets; for Refused the stage
  std::string message;  // Refused
  Block shared, first, second;
  std::string broken;  // what is wrong with the case itself
};

std::vector<Case> read_cases(const std::string& path);

/// What fails, or nothing.
std::string run(const Case& c);

}  // namespace pg::text_test
