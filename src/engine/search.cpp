#include "engine/search.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <mutex>

#include "base/flags.h"
#include "base/log.h"
#include "codegen/compile.h"
#include "codegen/search.h"
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

}  // namespace

std::vector<codegen::Opt> search_options(Ref graph, runtime::Device& device) {
  static std::mutex* one_at_a_time = new std::mutex;
  const std::lock_guard lock(*one_at_a_time);
  constexpr double kNever = std::numeric_limits<double>::infinity();
  UOp kernel, prepared;
  std::unique_ptr<Arguments> arguments;
  {
    GraphScope scope;
    kernel = graph;
    prepared = codegen::prepare(kernel, device.target());
    arguments = std::make_unique<Arguments>(kernel, device);
  }
  double best = kNever;
  std::string name;
  auto trial = [&](const std::vector<codegen::Opt>& options) {
    try {
      std::shared_ptr<Kernel> made;
      {
        GraphScope scope;
        made = Kernel::lowered(kernel, device, nullptr, &options);
      }
      double s = seconds_of(made->program(), *arguments, best);
      name = made->name();
      best = std::min(best, s);
      return s;
    } catch (const ValueError&) {
      return kNever;  // the options do not fit the kernel
    } catch (const DeviceError&) {
      return kNever;  // or the device
    }
  };
  auto found =
      codegen::search(prepared, device.target(), {.width = static_cast<std::size_t>(flags::beam())}, trial);
  std::string text;
  for (const codegen::Opt& o : found.options) text += " " + to_string(o);
  log(LogLevel::Summary, "search {}: {:.3f} ms, from {:.3f} ms, {} trials:{}", name, found.seconds * 1e3,
      found.first * 1e3, found.trials, text);
  return found.options;
}

}  // namespace pg::engine
