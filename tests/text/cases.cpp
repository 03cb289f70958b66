#include "text/cases.h"

#include <fstream>
#include <map>

#include "ir/parse.h"
#include "ir/print.h"
#include "rules/named.h"
#include "rules/spec.h"
#include "text/evaluate.h"

namespace pg::text_test {
namespace {

std::string trim(std::string_view s) {
  std::size_t first = s.find_first_not_of(" \t\r");
  return first == std::string_view::npos
             ? ""
             : std::string(s.substr(first, s.find_last_not_of(" \t\r") - first + 1));
}
bool is_blank(const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = std::min(text.find('\n', at), text.size());
    std::string line = trim(std::string_view(text).substr(at, end - at));
    if (!line.empty() && line[0] != '#') return false;
    at = end + 1;
  }
  return true;
}

// A claim's line: true if `line` is one.
bool read_claim(const std::string& line, Case& c) {
  auto rest = [&](std::string_view sign) { return trim(std::string_view(line).substr(sign.size())); };
  auto begins = [&](std::string_view sign) {
    return line.starts_with(sign) && (line.size() == sign.size() || line[sign.size()] == ' ');
  };
  if (begins("=>")) {
    c.pass = rest("=>");
    constexpr std::string_view kUnchanged = " unchanged";
    if (c.pass.ends_with(kUnchanged)) {
      c.pass = trim(std::string_view(c.pass).substr(0, c.pass.size() - kUnchanged.size()));
      c.claim = Case::Unchanged;
    }
    if (c.pass.empty()) c.broken = "=> names no rule sets";
  } else if (begins("==")) {
    c.claim = Case::Same;
    c.pass = rest("==");
  } else if (begins("=/=")) {
    c.claim = Case::Different;
    c.pass = rest("=/=");
  } else if (begins("=!")) {
    c.claim = Case::Refused;
    std::string all = rest("=!");
    std::size_t space = std::min(all.find(' '), all.size());
    c.pass = all.substr(0, space);
    c.message = trim(std::string_view(all).substr(space));
    if (c.message.empty()) c.broken = "=! needs a stage and a part of the message";
  } else {
    return false;
  }
  return true;
}

void finish(Case& c) {
  if (!c.broken.empty()) return;
  bool two = c.claim == Case::Becomes || c.claim == Case::Same || c.claim == Case::Different;
  if (!c.claim_line)
    c.broken = "there is no line that begins with =>, ==, =/= or =!";
  else if (is_blank(c.first.text))
    c.broken = "there is no graph";
  else if (two == is_blank(c.second.text))
    c.broken = two ? "there is no second graph" : "there is a second graph";
}

std::string two_graphs(std::string_view label_a, Ref a, std::string_view label_b, Ref b) {
  return std::string(label_a) + "\n" + print(a) + std::string(label_b) + "\n" + print(b);
}

std::string refused(const Case& c, const ParseOptions& options) {
  std::string error;
  try {
    Ref graph = parse(c.first.text, options);
    if (c.pass != "parse") rules::verify(graph, rules::parse_stage(c.pass), "text");
  } catch (const InternalError& e) {
    error = e.what();
  } catch (const ValueError& e) {
    if (c.pass != "parse") throw;
    error = e.what();
  }
  if (error.empty()) return "it is not refused";
  return error.find(c.message) != std::string::npos ? "" : "it is refused otherwise: " + error;
}

}  // namespace

std::vector<Case> read_cases(const std::string& path) {
  std::vector<Case> cases;
  Block shared;
  Block* block = &shared;
  std::ifstream in(path);
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.starts_with("---")) {
      if (!cases.empty()) finish(cases.back());
      cases.push_back(
          {.file = path, .title = trim(std::string_view(line).substr(3)), .line = number, .shared = shared});
      if (cases.back().title.empty()) cases.back().broken = "it has no title";
      block = &cases.back().first;
      block->line = number + 1;
    } else if (!cases.empty() && line.starts_with('=') && read_claim(line, cases.back())) {
      Case& c = cases.back();
      if (c.claim_line) c.broken = "it claims twice";
      c.claim_line = number;
      block = &c.second;
      block->line = number + 1;
    } else {
      block->text += line + '\n';
    }
  }
  if (!cases.empty())
    finish(cases.back());
  else
    cases.push_back({.file = path, .title = "file", .line = 1, .broken = "the file holds no cases"});
  return cases;
}

std::string run(const Case& c) {
  if (!c.broken.empty()) return c.broken;
  GraphScope scope;
  std::map<std::string, Ref, std::less<>> names;
  auto options = [&](const Block& block, bool canonical = true) {
    return ParseOptions{.canonical = canonical, .names = &names, .first_line = block.line};
  };
  if (!is_blank(c.shared.text)) parse(c.shared.text, options(c.shared));
  if (c.claim == Case::Refused) return refused(c, options(c.first, false));

  auto shared = names;
  Ref first = parse(c.first.text, options(c.first)), second;
  // The second graph may name nodes anew.
  names = shared;
  if (c.claim != Case::Unchanged) second = parse(c.second.text, options(c.second));
  RuleSet set;
  if (!c.pass.empty()) set = rules::named(c.pass);
  auto pass = [&](Ref n) { return c.pass.empty() ? n : rewrite(n, set, {.name = "text"}); };
  Ref result = pass(first);
  if (std::string wrong = difference(first, result); !wrong.empty())
    return two_graphs("the rules change the value of", first, "into", result) + wrong;
  switch (c.claim) {
    case Case::Unchanged:
      return same(result, first) ? "" : two_graphs("it becomes", result, "from", first);
    case Case::Becomes: {
      if (std::string wrong = difference(first, second); !wrong.empty())
        return "the claim is false: " + wrong;
      return same(result, second) ? "" : two_graphs("it becomes", result, "not", second);
    }
    default: {
      Ref other = pass(second);
      if (c.claim == Case::Different) return same(result, other) ? "both become\n" + print(result) : "";
      if (std::string wrong = difference(first, second); !wrong.empty())
        return "the claim is false: " + wrong;
      return same(result, other) ? "" : two_graphs("they become", result, "and", other);
    }
  }
}

}  // namespace pg::text_test
