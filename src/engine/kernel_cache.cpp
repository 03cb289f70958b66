#include "engine/kernel_cache.h"

#include <atomic>
#include <cstring>
#include <mutex>
#include <thread>

#include <absl/container/flat_hash_map.h>

#include "base/disk_cache.h"
#include "base/flags.h"
#include "base/hash.h"
#include "base/log.h"
#include "code_version.h"
#include "codegen/compile.h"
#include "engine/engine.h"
#include "ir/print.h"
#include "render/program.h"
#include "rules/spec.h"

namespace pg::engine {
namespace {

struct Key {
  Node* kernel;
  const runtime::Device* device;
  friend bool operator==(const Key&, const Key&) = default;
  template <class H>
  friend H AbslHashValue(H h, const Key& k) {
    return H::combine(std::move(h), k.kernel, k.device);
  }
};
struct Cached {
  UOp keep;
  std::shared_ptr<const CompiledKernel> kernel;
};
struct Cache {
  std::mutex mutex;
  absl::flat_hash_map<Key, Cached> kernels;
  static constexpr std::size_t kCap = 1 << 14;
};
Cache& cache() {
  static Cache* c = new Cache;
  return *c;
}
std::atomic<std::uint64_t> g_compiled{0};

// A digest of everything a kernel graph says: stable between runs.
Digest digest_of(Ref kernel, const Target& target, std::string_view compiler) {
  Digester d;
  d.add(std::string_view(PANGRAD_CODE_VERSION))
      .add(std::string_view(target.key()))
      .add(compiler)
      .add(flags::noopt());
  absl::flat_hash_map<Node*, std::uint64_t> number;
  for (Ref n : toposort(kernel)) {
    d.add(static_cast<std::uint64_t>(n.op()))
        .add(static_cast<std::uint64_t>(n.dtype()))
        .add(static_cast<std::uint64_t>(n.lanes()));
    ArgKind kind = info(n.op()).arg;
    bool payload = kind == ArgKind::Ints || kind == ArgKind::Str || kind == ArgKind::Object;
    if (!payload)
      d.add(static_cast<std::uint64_t>(n.i()));
    else if (n.has_object())
      d.add(n->arg.p->hash);
    for (Node* s : n.srcs()) d.add(number[s]);
    std::uint64_t id = number.size();
    number[n.node()] = id;
  }
  return d.finish();
}

// On disk: the signature as numbers, the name, the code.
struct Header {
  std::uint32_t magic = 0x70676b31;
  std::int32_t buffers, variables;
  std::int64_t global[3], local[3];
  std::uint64_t scratch;
  double flops, bytes;
  std::uint64_t name, code;
};

std::string pack(const runtime::ProgramImage& image, const CompiledKernel& info) {
  Header h{};
  h.magic = 0x70676b31;
  h.buffers = image.signature.buffers;
  h.variables = image.signature.variables;
  std::copy_n(image.signature.size.global.begin(), 3, h.global);
  std::copy_n(image.signature.size.local.begin(), 3, h.local);
  h.scratch = image.signature.scratch_bytes;
  h.flops = info.flops;
  h.bytes = info.bytes;
  h.name = image.signature.name.size();
  h.code = image.code.size();
  std::string out(sizeof h, '\0');
  std::memcpy(out.data(), &h, sizeof h);
  out += image.signature.name;
  out.append(reinterpret_cast<const char*>(image.code.data()), image.code.size());
  return out;
}

bool unpack(const std::string& in, runtime::ProgramImage& image, CompiledKernel& info) {
  Header h;
  if (in.size() < sizeof h) return false;
  std::memcpy(&h, in.data(), sizeof h);
  if (h.magic != 0x70676b31 || h.name > in.size() || h.code > in.size() ||
      in.size() != sizeof h + h.name + h.code)
    return false;
  image.signature.name = in.substr(sizeof h, h.name);
  image.signature.buffers = h.buffers;
  image.signature.variables = h.variables;
  std::copy_n(h.global, 3, image.signature.size.global.begin());
  std::copy_n(h.local, 3, image.signature.size.local.begin());
  image.signature.scratch_bytes = h.scratch;
  image.code.resize(h.code);
  std::memcpy(image.code.data(), in.data() + sizeof h + h.name, h.code);
  info.name = image.signature.name;
  info.flops = h.flops;
  info.bytes = h.bytes;
  return true;
}

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
  for (Ref n : toposort(kernel)) {
    if (n.is(Op::Reduce)) reduces = true;
    if (n.is(Op::End))
      for (int i = 1; i < n.nsrc(); ++i) out += "_" + std::to_string(n.src(i).hi() + 1);
  }
  for (Ref n : toposort(kernel))
    if (n.is(Op::Range) && n.range_kind() == RangeKind::Reduce) out += "_r" + std::to_string(n.hi() + 1);
  return (reduces ? "r" : "e") + out;
}

}  // namespace

KernelJob::KernelJob(Ref kernel, runtime::Device& device) : kernel_(kernel), device_(device) {
  language_ = device.languages().front();
  if (!flags::renderer().empty()) language_ = flags::renderer();
  const Target& target = device.target();
  to_disk_ = flags::cache() >= 2;
  if (to_disk_) {
    digest_ = digest_of(kernel, target, device.compiler(language_).key());
    if (auto blob = disk_cache().get(kTable, digest_); blob && unpack(*blob, image_, info_)) {
      from_disk_ = true;
      return;
    }
  }
  rules::check(kernel, rules::Stage::Kernel, "lower");
  codegen::Lowered lowered = codegen::lower(kernel, target);
  rules::check(lowered.linear, rules::Stage::Program, "render");
  ProgramInfo program = program_info(lowered.linear, kernel_name(kernel), target);
  if (log_enabled(LogLevel::Options)) {
    std::string opts;
    for (const codegen::Opt& o : lowered.options) opts += " " + to_string(o);
    log_text(LogLevel::Options, program.name + ":" + (opts.empty() ? " no options" : opts));
  }
  if (log_enabled(LogLevel::Graphs))
    log_text(LogLevel::Graphs, "program " + program.name + ":\n" + print(lowered.linear));
  text_ = render(language_, lowered.linear, program, target);
  if (log_enabled(LogLevel::Code)) log_text(LogLevel::Code, text_);
  Estimate e = estimate(lowered.linear);
  info_ = {nullptr, program.name, e.flops, e.bytes};
  image_.signature = {
      program.name, program.buffers, program.scalars, {}, static_cast<std::size_t>(program.scratch_bytes)};
  image_.signature.size.global = program.global;
  image_.signature.size.local = program.local;
  if (program.threads > 1) image_.signature.size.global = {program.threads, 1, 1};
}

std::shared_ptr<const CompiledKernel> KernelJob::finish() {
  if (!from_disk_) {
    image_.code = device_.compiler(language_).compile(text_);
    ++g_compiled;
    if (to_disk_) disk_cache().put(kTable, digest_, pack(image_, info_));
  }
  auto kernel = std::make_shared<CompiledKernel>(info_);
  kernel->program = device_.load(image_);
  Cache& c = cache();
  std::lock_guard lock(c.mutex);
  if (c.kernels.size() >= Cache::kCap) c.kernels.clear();
  c.kernels[{kernel_.ref().node(), &device_}] = {kernel_, kernel};
  return kernel;
}

std::shared_ptr<const CompiledKernel> find_kernel(Ref kernel, const runtime::Device& device) {
  Cache& c = cache();
  std::lock_guard lock(c.mutex);
  auto it = c.kernels.find({kernel.node(), &device});
  return it == c.kernels.end() ? nullptr : it->second.kernel;
}

void compile_all(std::vector<KernelJob>& jobs) {
  std::atomic<std::size_t> next{0};
  std::exception_ptr failed;
  std::mutex mutex;
  auto work = [&] {
    for (std::size_t i; (i = next++) < jobs.size();) try {
        jobs[i].finish();
      } catch (...) {
        std::lock_guard lock(mutex);
        if (!failed) failed = std::current_exception();
      }
  };
  std::vector<std::thread> helpers;
  std::size_t cores = static_cast<std::size_t>(std::max(1u, std::thread::hardware_concurrency()));
  for (std::size_t i = 1; i < std::min(cores, jobs.size()); ++i) helpers.emplace_back(work);
  work();
  for (std::thread& t : helpers) t.join();
  if (failed) std::rethrow_exception(failed);
}

std::size_t kernels_cached() {
  std::lock_guard lock(cache().mutex);
  return cache().kernels.size();
}
void forget_kernels() {
  Cache& c = cache();
  std::lock_guard lock(c.mutex);
  c.kernels.clear();
}
std::uint64_t kernels_compiled() { return g_compiled; }

}  // namespace pg::engine
