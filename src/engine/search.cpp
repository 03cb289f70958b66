#include "engine/search.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <mutex>
#include <optional>
#include <thread>

#include <absl/container/flat_hash_map.h>

#include "base/disk_cache.h"
#include "base/flags.h"
#include "base/log.h"
#include "codegen/compile.h"
#include "codegen/search.h"
#include "engine/compile_crew.h"
#include "engine/kernel.h"

namespace pg::engine {
namespace {

// The kernel's buffers by slot: several sets where one would stay in the cache, as it may not in the program.
class Arguments {
 public:
  Arguments(Ref kernel, runtime::Device& device) {
    std::vector<std::size_t> bytes;
    for (Ref n : toposort(kernel)) {
      if (n.is(Op::Param)) {
        auto slot = static_cast<std::size_t>(n.i());
        if (bytes.size() <= slot) bytes.resize(slot + 1, 64);
        bytes[slot] = static_cast<std::size_t>(max_numel(n.src(0))) * itemsize(n.dtype());
      } else if (n.is(Op::ScalarParam)) {
        auto slot = static_cast<std::size_t>(n.i());
        if (variables.size() <= slot) variables.resize(slot + 1, 0);
        variables[slot] = n.hi();
      }
    }
    std::size_t all = 0;
    for (std::size_t b : bytes) all += b;
    std::size_t sets = std::clamp<std::size_t>(
        2 * static_cast<std::size_t>(device.target().l2) / std::max<std::size_t>(all, 1), 1, 8);
    for (std::size_t s = 0; s < sets; ++s) {
      sets_.emplace_back();
      for (std::size_t b : bytes) {
        // As numbers of any dtype it is small and not zero.
        std::vector<std::byte> content(std::max<std::size_t>(b, 1), std::byte{0x3c});
        sets_.back().push_back(device.allocate(content.size()));
        device.copy_in(sets_.back().back(), content.data());
      }
    }
  }
  const std::vector<runtime::Buffer>& next() { return sets_[turn_++ % sets_.size()]; }
  std::vector<std::int64_t> variables;

 private:
  std::vector<std::vector<runtime::Buffer>> sets_;
  std::size_t turn_ = 0;
};

double seconds_of(runtime::Program& program, Arguments& arguments, double best) {
  using Clock = std::chrono::steady_clock;
  runtime::Device& device = program.device();
  double least = std::numeric_limits<double>::infinity(), spent = 0;
  for (int run = 0; run < 30 && (run < 3 || spent < 0.02); ++run) {
    auto begin = Clock::now();
    device.wait(program.launch(arguments.next(), arguments.variables));
    double s = std::chrono::duration<double>(Clock::now() - begin).count();
    spent += s;
    least = std::min(least, s);
    if (run && least > 2 * best) break;  // no need to know how much worse
  }
  return least;
}

using Options = std::vector<codegen::Opt>;
constexpr std::string_view kTable = "searches";
constexpr double kNever = std::numeric_limits<double>::infinity();

std::string pack(const Options& options) {
  std::string out(options.size() * sizeof(codegen::Opt), '\0');
  for (std::size_t i = 0; i < options.size(); ++i) {
    codegen::Opt clean;
    std::memset(static_cast<void*>(&clean), 0, sizeof clean);  // between its members
    clean.kind = options[i].kind, clean.loop = options[i].loop, clean.amount = options[i].amount;
    std::memcpy(out.data() + i * sizeof clean, &clean, sizeof clean);
  }
  return out;
}
Options unpack(const std::string& bytes) {
  Options out(bytes.size() / sizeof(codegen::Opt));
  if (!out.empty())
    std::memcpy(static_cast<void*>(out.data()), bytes.data(), out.size() * sizeof(codegen::Opt));
  return out;
}

// Kernels of one graph by options: compiled together, then timed one after the other.
class Candidates {
 public:
  Candidates(const UOp& kernel, runtime::Device& device) : kernel_(kernel), device_(device) {
    GraphScope scope;
    arguments_ = std::make_unique<Arguments>(kernel_, device_);
  }

  std::vector<double> try_out(std::span<const Options> lists) {
    std::vector<std::shared_ptr<Kernel>> made;
    CompileCrew crew;
    for (const Options& o : lists) {
      made.push_back(lowered(o));
      if (made.back() && !known_.contains(made.back()->text())) crew.add(made.back());
    }
    std::vector<std::string> texts;  // a kernel that is compiled has none any more
    for (auto& k : made) texts.push_back(k ? k->text() : std::string());
    for (std::size_t i = 0; i < made.size(); ++i)
      if (made[i] && !known_.contains(texts[i]) && !compiled(crew, *made[i])) made[i] = nullptr;
    std::vector<double> out;
    for (std::size_t i = 0; i < made.size(); ++i) {
      if (!made[i]) {
        out.push_back(kNever);
        continue;
      }
      auto [it, fresh] = known_.try_emplace(texts[i], kNever);
      if (fresh) it->second = timed(*made[i]);
      out.push_back(it->second);
    }
    return out;
  }
  const std::string& name() const { return name_; }

 private:
  std::shared_ptr<Kernel> lowered(const Options& options) {
    try {
      GraphScope scope;
      auto kernel = Kernel::lowered(kernel_, device_, nullptr, &options);
      name_ = kernel->name();
      return kernel;
    } catch (const ValueError&) {
      return nullptr;  // the options do not fit the kernel
    }
  }
  static bool compiled(CompileCrew& crew, Kernel& kernel) {
    try {
      crew.program(kernel);
      return true;
    } catch (const DeviceError&) {
      return false;  // nor the device
    }
  }
  double timed(Kernel& kernel) {
    try {
      double s = seconds_of(kernel.program(), *arguments_, best_);
      best_ = std::min(best_, s);
      return s;
    } catch (const DeviceError&) {
      return kNever;
    }
  }

  const UOp& kernel_;
  runtime::Device& device_;
  std::unique_ptr<Arguments> arguments_;
  absl::flat_hash_map<std::string, double> known_;  // by text: options of the same effect
  double best_ = kNever;
  std::string name_;
};

}  // namespace

Searched search_options(Ref graph, runtime::Device& device, const Digest* digest,
                        std::chrono::steady_clock::time_point until) {
  static std::mutex* one_at_a_time = new std::mutex;
  const std::lock_guard lock(*one_at_a_time);
  UOp kernel, prepared;
  {
    GraphScope scope;
    kernel = graph;
    prepared = codegen::prepare(kernel, device.target());
  }
  std::optional<Options> so_far;
  if (digest)
    if (auto bytes = disk_cache().get(kTable, *digest)) so_far = unpack(*bytes);
  codegen::SearchLimits limits{.width = static_cast<std::size_t>(flags::beam()),
                               .batch = 4 * std::max<std::size_t>(1, std::thread::hardware_concurrency()),
                               .until = until};
  Candidates candidates(kernel, device);
  auto found = codegen::search(
      prepared, device.target(), limits,
      [&](std::span<const Options> lists) { return candidates.try_out(lists); }, so_far ? &*so_far : nullptr);
  if (digest && !found.finished) disk_cache().put(kTable, *digest, pack(found.options));
  std::string text;
  for (const codegen::Opt& o : found.options) text += " " + to_string(o);
  log(LogLevel::Summary, "search {}: {:.3f} ms, from {:.3f} ms, {} trials{}:{}", candidates.name(),
      found.seconds * 1e3, found.first * 1e3, found.trials, found.finished ? "" : ", interrupted", text);
  return {found.options, found.seconds, found.first, found.finished};
}

}  // namespace pg::engine
