#include "engine/kernel.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include <code_version.h>

#include "base/disk_cache.h"
#include "base/flags.h"
#include "base/log.h"
#include "codegen/compile.h"
#include "ir/print.h"
#include "render/program.h"
#include "rules/spec.h"
#include "runtime/fork.h"

namespace pg::engine {

// The kernels that some thread compiles now. A forked child has none of those threads, so there they wait
// again.
struct Compiling {
  runtime::ForkSafeMutex mutex;
  std::vector<Kernel*> kernels;

  static Compiling& get() {
    static Compiling* instance = [] {
      auto* made = new Compiling;
      in_process_ = made;
      runtime::after_fork([](bool in_child) {
        if (!in_child) return;
        for (Kernel* k : in_process_->kernels) k->state_.store(Kernel::State::Waiting);
        in_process_->kernels.clear();
      });
      return made;
    }();
    return *instance;
  }

 private:
  static inline Compiling* in_process_ = nullptr;
};

namespace {

std::atomic<std::uint64_t> g_compiled{0};

// On disk: the signature as numbers, the name, the code.
struct Header {
  std::uint32_t magic;
  std::int32_t buffers, variables;
  std::int64_t global[3], local[3];
  std::uint64_t scratch;
  double flops, bytes;
  std::uint64_t name, code;
};

constexpr std::uint32_t kMagic = 0x70676b31;

constexpr std::string_view kTable = "kernels";

std::string render(std::string_view language, Ref linear, const ProgramInfo& program, const Target& target) {
  if (language == "llvm") return render_llvm(linear, program, target);
  if (language == "c") return render_c(linear, program, target);
  if (language == "program") return print(linear);
  throw DeviceError("[realize] no renderer for the language \"" + std::string(language) + "\"");
}

// "r_512_32_20_20": r with, e without a reduction, then the extents of its loops.
std::string kernel_name(Ref kernel) {
  std::string out;
  bool reduces = false;
  auto order = toposort(kernel);
  Ref longest;  // the loops of other stores are among its own
  for (Ref n : order) {
    if (n.is(Op::Reduce)) reduces = true;
    if (n.is(Op::End) && (!longest || n.nsrc() > longest.nsrc())) longest = n;
  }
  for (int i = 1; i < longest.nsrc(); ++i) out += "_" + std::to_string(longest.src(i).hi() + 1);
  for (Ref n : order)
    if (n.is(Op::Range) && n.range_kind() == RangeKind::Reduce) out += "_r" + std::to_string(n.hi() + 1);
  return (reduces ? "r" : "e") + out;
}

std::string language_of(runtime::Device& device) {
  return flags::renderer().empty() ? device.languages().front() : flags::renderer();
}

}  // namespace

Digest digest_of(Ref kernel, runtime::Device& device) {
  Digester d;
  d.add(std::string_view(PANGRAD_CODE_VERSION))
      .add(std::string_view(device.target().key()))
      .add(std::string_view(device.compiler(language_of(device)).key()))
      .add(flags::noopt())
      .add(flags::beam());
  for (Ref n : toposort(kernel)) {
    d.add(n.op()).add(n.dtype()).add(n.lanes());
    ArgKind kind = info(n.op()).arg;
    bool payload = kind == ArgKind::Ints || kind == ArgKind::Str || kind == ArgKind::Object;
    if (!payload)
      d.add(n.i());
    else if (n.has_object())
      d.add(n->arg.p->hash);
    // The walk left its order as marks.
    for (Node* s : n.srcs()) d.add(s->mark);
  }
  return d.finish();
}

std::shared_ptr<Kernel> Kernel::lowered(Ref kernel, runtime::Device& device, const Digest* digest,
                                        const std::vector<codegen::Opt>* options) {
  std::shared_ptr<Kernel> out(new Kernel(device));
  out->language_ = language_of(device);
  if (digest) out->digest_ = *digest;
  out->to_disk_ = digest != nullptr;
  const Target& target = device.target();
  rules::check(kernel, rules::Stage::Kernel, "lower");
  codegen::Lowered lowered = codegen::lower(kernel, target, options);
  rules::check(lowered.linear, rules::Stage::Program, "render");
  ProgramInfo program = program_info(lowered.linear, kernel_name(kernel), target);
  if (log_enabled(LogLevel::Options)) {
    std::string opts;
    for (const codegen::Opt& o : lowered.options) opts += " " + to_string(o);
    log_text(LogLevel::Options, program.name + ":" + (opts.empty() ? " no options" : opts));
  }
  if (log_enabled(LogLevel::Graphs))
    log_text(LogLevel::Graphs, "program " + program.name + ":\n" + print(lowered.linear));
  out->text_ = render(out->language_, lowered.linear, program, target);
  if (log_enabled(LogLevel::Code)) log_text(LogLevel::Code, out->text_);
  Estimate e = estimate(lowered.linear);
  out->flops_ = e.flops;
  out->bytes_ = e.bytes;
  runtime::Signature& signature = out->image_.signature;
  signature = {
      program.name, program.buffers, program.scalars, {}, static_cast<std::size_t>(program.scratch_bytes)};
  signature.size.global = program.global;
  signature.size.local = program.local;
  if (program.threads > 1) signature.size.global = {program.threads, 1, 1};
  return out;
}

std::shared_ptr<Kernel> Kernel::from_disk(runtime::Device& device, const Digest& digest) {
  auto bytes = disk_cache().get(kTable, digest);
  if (!bytes) return nullptr;
  std::shared_ptr<Kernel> out(new Kernel(device));
  try {
    if (!out->unpack(*bytes)) throw DeviceError("[realize] not a kernel");
    out->load();
  } catch (const Error& e) {
    // Whatever is there, it can be made anew.
    log(LogLevel::Summary, "disk cache: {}", e.what());
    return nullptr;
  }
  out->state_ = State::Ready;
  return out;
}

std::string Kernel::pack() const {
  const runtime::Signature& signature = image_.signature;
  Header h{};
  h.magic = kMagic;
  h.buffers = signature.buffers;
  h.variables = signature.variables;
  std::copy_n(signature.size.global.begin(), 3, h.global);
  std::copy_n(signature.size.local.begin(), 3, h.local);
  h.scratch = signature.scratch_bytes;
  h.flops = flops_;
  h.bytes = bytes_;
  h.name = signature.name.size();
  h.code = image_.code.size();
  std::string out(sizeof h, '\0');
  std::memcpy(out.data(), &h, sizeof h);
  out += signature.name;
  out.append(reinterpret_cast<const char*>(image_.code.data()), image_.code.size());
  return out;
}

bool Kernel::unpack(const std::string& in) {
  Header h;
  if (in.size() < sizeof h) return false;
  std::memcpy(&h, in.data(), sizeof h);
  if (h.magic != kMagic || h.name > in.size() || h.code > in.size() ||
      in.size() != sizeof h + h.name + h.code)
    return false;
  runtime::Signature& signature = image_.signature;
  signature.name = in.substr(sizeof h, h.name);
  signature.buffers = h.buffers;
  signature.variables = h.variables;
  std::copy_n(h.global, 3, signature.size.global.begin());
  std::copy_n(h.local, 3, signature.size.local.begin());
  signature.scratch_bytes = h.scratch;
  image_.code.resize(h.code);
  std::memcpy(image_.code.data(), in.data() + sizeof h + h.name, h.code);
  flops_ = h.flops;
  bytes_ = h.bytes;
  return true;
}

bool Kernel::compile() {
  Compiling& now = Compiling::get();
  {
    const std::lock_guard lock(now.mutex);
    State waiting = State::Waiting;
    if (!state_.compare_exchange_strong(waiting, State::Compiling)) return false;
    now.kernels.push_back(this);
  }
  auto end = [&](State state) {
    {
      const std::lock_guard lock(now.mutex);
      std::erase(now.kernels, this);
      state_.store(state, std::memory_order_release);
    }
    state_.notify_all();
  };
  try {
    make();
  } catch (...) {
    end(State::Waiting);
    throw;
  }
  end(State::Ready);
  return true;
}

void Kernel::make() {
  image_.code = device_.compiler(language_).compile(text_);
  ++g_compiled;
  if (to_disk_) disk_cache().put(kTable, digest_, pack());
  load();
}

void Kernel::load() {
  program_ = device_.load(image_);
  // Nobody needs these any more.
  image_.code = {};
  text_ = {};
}

void Kernel::wait() {
  while (!ready())
    if (!compile()) state_.wait(State::Compiling, std::memory_order_acquire);
}

std::uint64_t kernels_compiled() { return g_compiled; }

}  // namespace pg::engine
