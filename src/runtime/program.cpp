#include "runtime/program.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "runtime/device.h"
#include "runtime/launch_list.h"
#include <pangrad/error.h>

namespace pg::runtime {
namespace {

template <class... Cases>
struct Match : Cases... {
  using Cases::operator()...;
};

void check_size(const Program& program, const LaunchSize& size) {
  const auto negative = [](int64_t n) { return n < 0; };
  if (std::ranges::any_of(size.global, negative) || std::ranges::any_of(size.local, negative)) {
    throw ValueError(fmt::format("[launch] {}: a negative launch size", program.signature().name));
  }
}

}  // namespace

Compiler::~Compiler() = default;
Program::~Program() = default;
LaunchList::~LaunchList() = default;

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void check_argument(const Program& program, size_t index, const Buffer& buffer) {
  const std::string& name = program.signature().name;
  if (!buffer) throw ValueError(fmt::format("[launch] {}: buffer {} is empty", name, index));
  if (&buffer.device() != &program.device()) {
    throw DeviceError(fmt::format("[launch] {} runs on {}, buffer {} is on {}", name, program.device().name(),
                                  index, buffer.device().name()));
  }
}

void check_launch(const Program& program, std::span<const Buffer> buffers, std::span<const int64_t> variables,
                  const LaunchSize& size) {
  const Signature& wants = program.signature();
  if (std::cmp_not_equal(buffers.size(), wants.buffers) ||
      std::cmp_not_equal(variables.size(), wants.variables)) {
    throw ValueError(fmt::format("[launch] {} takes {} buffers and {} variables, not {} and {}", wants.name,
                                 wants.buffers, wants.variables, buffers.size(), variables.size()));
  }
  for (size_t i = 0; i < buffers.size(); i++) check_argument(program, i, buffers[i]);
  check_size(program, size);
}

uint64_t Program::launch(std::span<const Buffer> buffers, std::span<const int64_t> variables,
                         const LaunchSize& size, Interval* time) {
  check_launch(*this, buffers, variables, size);
  return submit(buffers, variables, size, time);
}

CommandLoop::CommandLoop(Device& device, std::vector<Command> commands)
    : device_(device), commands_(std::move(commands)) {
  for (const Command& command : commands_) {
    std::visit(Match{[](const Launch& l) { check_launch(*l.program, l.buffers, l.variables, l.size); },
                     [](const Copy& c) { check_copy(c.to, c.from); }},
               command);
  }
}

Launch& CommandLoop::launch_at(size_t command) {
  auto* launch = command < commands_.size() ? std::get_if<Launch>(&commands_[command]) : nullptr;
  if (launch == nullptr) throw IndexError(fmt::format("[launch list] command {} is not a launch", command));
  return *launch;
}

void CommandLoop::set_buffer(size_t command, size_t index, const Buffer& buffer) {
  if (auto* copy = command < commands_.size() ? std::get_if<Copy>(&commands_[command]) : nullptr) {
    if (index > 1) throw IndexError(fmt::format("[launch list] a copy has no buffer {}", index));
    Copy changed = *copy;
    (index == 0 ? changed.to : changed.from) = buffer;
    check_copy(changed.to, changed.from);
    *copy = std::move(changed);
    return;
  }
  Launch& launch = launch_at(command);
  if (index >= launch.buffers.size()) {
    throw IndexError(
        fmt::format("[launch list] {} has no buffer {}", launch.program->signature().name, index));
  }
  check_argument(*launch.program, index, buffer);
  launch.buffers[index] = buffer;
}

void CommandLoop::set_variable(size_t command, size_t index, int64_t value) {
  Launch& launch = launch_at(command);
  if (index >= launch.variables.size()) {
    throw IndexError(
        fmt::format("[launch list] {} has no variable {}", launch.program->signature().name, index));
  }
  launch.variables[index] = value;
}

void CommandLoop::set_size(size_t command, const LaunchSize& size) {
  Launch& launch = launch_at(command);
  check_size(*launch.program, size);
  launch.size = size;
}

void CommandLoop::check_times(std::span<const Interval> times) const {
  if (!times.empty() && times.size() != commands_.size()) {
    throw ValueError(fmt::format("[launch list] {} times for {} commands", times.size(), commands_.size()));
  }
}

void CommandLoop::run_command(size_t command, Interval* time) {
  std::visit(Match{[&](const Launch& l) { l.program->launch(l.buffers, l.variables, l.size, time); },
                   [&](const Copy& c) {
                     const double begin = now_seconds();
                     copy(c.to, c.from);
                     if (time != nullptr) *time = {begin, now_seconds()};
                   }},
             commands_[command]);
}

uint64_t CommandLoop::run(std::span<Interval> times) {
  check_times(times);
  for (size_t i = 0; i < commands_.size(); i++) run_command(i, times.empty() ? nullptr : &times[i]);
  return device_.submitted();
}

std::unique_ptr<LaunchList> Device::prepare(std::vector<Command> commands) {
  return std::make_unique<CommandLoop>(*this, std::move(commands));
}

}  // namespace pg::runtime
