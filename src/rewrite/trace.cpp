#include "rewrite/trace.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/flags.h"
#include "base/log.h"
#include "base/strings.h"
#include "ir/print.h"
#include "rewrite/rewrite.h"

namespace pg {
namespace {

using Json = nlohmann::ordered_json;

struct Close {
  void operator()(std::FILE* f) const { std::fclose(f); }
};

// The file being written to. Unknown until the first pass has looked at TRACE.
struct Writer {
  enum State : int { Unknown, Off, On };
  std::atomic<int> state{Unknown};
  std::mutex mutex;
  std::unique_ptr<std::FILE, Close> file;
};
Writer& writer() {
  static Writer& instance = *new Writer;
  return instance;
}

// Sources are compiled under paths of the build; their place in the repository is what a reader wants.
std::string short_path(std::string_view path) {
  for (std::string_view root : {"/src/", "/tests/"})
    if (auto at = path.rfind(root); at != std::string_view::npos) return std::string(path.substr(at + 1));
  return std::string(path);
}

TracedPass from_json(const Json& j) {
  TracedPass p;
  p.name = j.at("pass").get<std::string>();
  p.seconds = j.at("seconds").get<double>();
  p.nodes = j.at("nodes").get<std::uint64_t>();
  p.attempts = j.at("attempts").get<std::uint64_t>();
  for (const Json& r : j.at("fired")) {
    std::string rule = r.at("rule").get<std::string>();
    std::size_t colon = rule.rfind(':');
    if (colon == std::string::npos) throw std::invalid_argument("a rule without a line");
    p.fired.push_back({rule.substr(0, colon), static_cast<std::uint32_t>(std::stoul(rule.substr(colon + 1))),
                       r.at("count").get<std::uint64_t>()});
  }
  p.before = j.at("before").get<std::string>();
  p.after = j.contains("after") ? j.at("after").get<std::string>() : p.before;
  return p;
}

std::uint64_t times_fired(const TracedPass& p) {
  std::uint64_t n = 0;
  for (const TracedRule& r : p.fired) n += r.count;
  return n;
}

}  // namespace

void start_trace(const std::string& path) {
  std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "a"));
  if (!file) throw FileError("[trace] cannot write " + path + ": " + std::strerror(errno));
  std::lock_guard lock(writer().mutex);
  writer().file = std::move(file);
  writer().state = Writer::On;
}

void stop_trace() {
  std::lock_guard lock(writer().mutex);
  writer().file.reset();
  writer().state = Writer::Off;
}

namespace detail {

bool tracing() {
  int state = writer().state.load(std::memory_order_relaxed);
  if (state == Writer::Unknown) [[unlikely]] {
    std::string path = flags::trace();
    if (path.empty()) {
      int expected = Writer::Unknown;
      writer().state.compare_exchange_strong(expected, Writer::Off);
    } else {
      start_trace(path);
    }
    state = writer().state.load();
  }
  return state == Writer::On;
}

void log_pass(const PassRecord& record) {
  if (record.fired.empty()) return;
  std::string s = fmt::format("{}: {}, {} nodes, {} tried", record.name, format_seconds(record.seconds),
                              record.nodes, record.attempts);
  for (auto& [rule, count] : record.fired)
    s += fmt::format("\n  {} x {}:{}", count, short_path(rule->file), rule->line);
  log_text(LogLevel::Rewrites, s);
}

void trace_pass(const PassRecord& record) {
  Json fired = Json::array();
  for (auto& [rule, count] : record.fired)
    fired.push_back({{"rule", fmt::format("{}:{}", short_path(rule->file), rule->line)}, {"count", count}});
  Json j{{"pass", record.name},         {"seconds", record.seconds}, {"nodes", record.nodes},
         {"attempts", record.attempts}, {"fired", std::move(fired)}, {"before", print(record.before)}};
  if (!same(record.before, record.after)) j["after"] = print(record.after);
  std::string line = j.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
  std::lock_guard lock(writer().mutex);
  if (!writer().file) return;
  std::fwrite(line.data(), 1, line.size(), writer().file.get());
  std::fflush(writer().file.get());
}

}  // namespace detail

std::vector<TracedPass> read_trace(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw FileError("[trace] cannot read " + path);
  std::vector<TracedPass> passes;
  std::size_t offset = 0;
  for (std::string line; std::getline(in, line) && !in.eof(); offset += line.size() + 1) {
    try {
      passes.push_back(from_json(Json::parse(line)));
    } catch (const std::exception& e) {  // of the JSON library, or a number too large
      throw FileError(fmt::format("[trace] {} at byte {}: no traced pass: {}", path, offset, e.what()));
    }
  }
  return passes;
}

std::string trace_summary(std::span<const TracedPass> passes) {
  struct Sum {
    std::uint64_t runs = 0, nodes = 0, attempts = 0, fired = 0;
    double seconds = 0;
  };
  std::map<std::string, Sum> by_name;
  std::map<std::string, std::uint64_t> by_rule;
  for (const TracedPass& p : passes) {
    Sum& s = by_name[p.name];
    s.runs += 1;
    s.nodes += p.nodes;
    s.attempts += p.attempts;
    s.fired += times_fired(p);
    s.seconds += p.seconds;
    for (const TracedRule& r : p.fired) by_rule[fmt::format("{}:{}", r.file, r.line)] += r.count;
  }
  std::vector<std::pair<std::string, Sum>> names(by_name.begin(), by_name.end());
  std::sort(names.begin(), names.end(), [](auto& a, auto& b) {
    return std::tie(b.second.seconds, a.first) < std::tie(a.second.seconds, b.first);
  });
  std::vector<std::pair<std::string, std::uint64_t>> rules(by_rule.begin(), by_rule.end());
  std::sort(rules.begin(), rules.end(),
            [](auto& a, auto& b) { return std::tie(b.second, a.first) < std::tie(a.second, b.first); });
  std::string s =
      fmt::format("{:>10} {:>7} {:>10} {:>10} {:>8}  pass\n", "time", "runs", "nodes", "tried", "fired");
  for (auto& [name, sum] : names)
    s += fmt::format("{:>10} {:>7} {:>10} {:>10} {:>8}  {}\n", format_seconds(sum.seconds), sum.runs,
                     sum.nodes, sum.attempts, sum.fired, name);
  if (!rules.empty()) s += fmt::format("\n{:>8}  rule\n", "fired");
  for (auto& [rule, count] : rules) s += fmt::format("{:>8}  {}\n", count, rule);
  return s;
}

std::string trace_listing(std::span<const TracedPass> passes, std::string_view name) {
  std::string s;
  for (const TracedPass& p : passes) {
    if (!name.empty() && p.name != name) continue;
    s += fmt::format("--- {}: {}, {} nodes, {} tried, {} fired\n", p.name, format_seconds(p.seconds), p.nodes,
                     p.attempts, times_fired(p));
    for (const TracedRule& r : p.fired) s += fmt::format("# {} x {}:{}\n", r.count, r.file, r.line);
    s += p.before;
    s += p.before == p.after ? "=> unchanged\n" : "=>\n" + p.after;
  }
  return s;
}

}  // namespace pg
