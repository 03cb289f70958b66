#include "rules/named.h"

#include <map>
#include <mutex>

#include "rules/decompose.h"
#include "rules/gates.h"
#include "rules/symbolic.h"

namespace pg::rules {
namespace {

struct Table {
  std::mutex mutex;
  std::map<std::string, std::function<RuleSet()>, std::less<>> sets{
      {"algebra", algebra}, {"divmod", divmod},     {"symbolic", symbolic},
      {"gates", gates},     {"movement", movement}, {"late", late},
  };
};
Table& table() {
  static Table& instance = *new Table;
  return instance;
}

std::string_view trim(std::string_view s) {
  std::size_t first = s.find_first_not_of(' ');
  return first == std::string_view::npos ? std::string_view()
                                         : s.substr(first, s.find_last_not_of(' ') - first + 1);
}

RuleSet one(std::string_view name) {
  std::function<RuleSet()> set;
  {
    std::lock_guard lock(table().mutex);
    auto it = table().sets.find(name);
    if (it != table().sets.end()) set = it->second;
  }
  if (set) return set();
  std::string known;
  for (const std::string& n : names()) known += (known.empty() ? "" : ", ") + n;
  throw ValueError("[rules] no set is named \"" + std::string(name) + "\"; there are: " + known);
}

}  // namespace

RuleSet named(std::string_view name) {
  std::size_t plus = name.find('+');
  RuleSet set = one(trim(name.substr(0, plus)));
  while (plus != std::string_view::npos) {
    name = name.substr(plus + 1);
    plus = name.find('+');
    set = set + one(trim(name.substr(0, plus)));
  }
  return set;
}

std::vector<std::string> names() {
  std::lock_guard lock(table().mutex);
  std::vector<std::string> out;
  for (auto& [name, set] : table().sets) out.push_back(name);
  return out;
}

void add_named(std::string_view name, std::function<RuleSet()> set) {
  std::lock_guard lock(table().mutex);
  table().sets.insert_or_assign(std::string(name), std::move(set));
}

}  // namespace pg::rules
