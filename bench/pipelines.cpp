// LLVM's pass pipelines on our kernels: what compiling takes against what the kernels take. Why the default
// in src/llvm/llvm_shim.cpp is what it is.
#include <algorithm>
#include <ctime>
#include <deque>
#include <numeric>

#include <absl/container/flat_hash_set.h>
#include <fmt/format.h>

#include "../apps/demo_net.h"
#include "codegen/compile.h"
#include "engine/engine.h"
#include "graph.h"
#include "render/program.h"
#include "resnet.h"
#include "runtime/cpu/llvm_compiler.h"
#include "runtime/device.h"
#include <pangrad/pangrad.h>

namespace pg::bench {
namespace {

struct Text {
  std::string text;
  runtime::Signature signature;
  std::vector<runtime::Buffer> buffers;
  std::vector<std::int64_t> scalars;
};

// The kernels of a schedule, each once, with memory to run on.
void add_texts(const schedule::Schedule& s, runtime::Device& device, std::vector<Text>& out) {
  absl::flat_hash_set<Node*> seen;
  GraphScope scope;
  for (Node* call : s.linear.ref().srcs()) {
    Ref kernel = call->src[0];
    if (kernel.is(Op::Copy) || !seen.insert(kernel.node()).second) continue;
    Ref linear = codegen::lower(kernel, device.target()).linear;
    ProgramInfo info = program_info(linear, "k", device.target());
    Text t;
    t.text = render_llvm(linear, info, device.target());
    t.signature.name = info.name;
    t.signature.buffers = info.buffers;
    t.signature.variables = info.scalars;
    t.signature.scratch_bytes = static_cast<std::size_t>(info.scratch_bytes);
    if (info.threads > 1) t.signature.size.global = {info.threads, 1, 1};
    for (Node* arg : Ref(call).srcs().subspan(1)) {
      if (arg->op != Op::Param) {
        t.scalars.push_back(arg->lo);
        continue;
      }
      const schedule::BufferInfo& b = s.buffers[static_cast<std::size_t>(arg->arg.i)];
      std::size_t bytes = static_cast<std::size_t>(std::max<std::int64_t>(1, b.size)) * itemsize(b.dtype);
      t.buffers.push_back(device.allocate(bytes));
      std::vector<std::byte> zeros(bytes);
      device.copy_in(t.buffers.back(), zeros.data());
    }
    out.push_back(std::move(t));
  }
}

std::vector<Text> texts(runtime::Device& device) {
  std::vector<Text> out;
  {
    ResNet50 net;
    NoGrad no_grad;
    for (const Tensor& t : parameters(net)) t.realize();
    UOp root = node_of(net(Tensor::empty({2, 3, 224, 224})));
    add_texts(engine::plan({&root, 1}), device, out);
  }
  apps::DemoNet net;
  optim::Adam opt(parameters(net), {});
  Training on;
  Tensor loss = net(Tensor::empty({64, 1, 28, 28}))
                    .sparse_categorical_crossentropy(Tensor::empty({64}, {.dtype = i32}));
  loss.backward();
  std::vector<UOp> roots{node_of(loss)};
  for (const Tensor& t : opt.schedule_step()) roots.push_back(node_of(t));
  add_texts(engine::plan(roots), device, out);
  return out;
}

// Seconds of this thread on its core: other processes do not count.
double cpu_now() {
  timespec t{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// Least seconds seen, by kernel: of compiling it, and of running it.
struct Pipeline {
  Pipeline(const char* label, const char* passes, int level, std::size_t kernels)
      : name(label), compiler({.passes = passes, .level = level}), compile(kernels, 1e9), run(kernels, 1e9) {
    compiler.compile("");
  }
  std::string name;
  runtime::LlvmCompiler compiler;
  std::vector<double> compile, run;
};

void measure(const std::vector<Text>& all, runtime::Device& device, Pipeline& p) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    double start = cpu_now();
    std::vector<std::byte> code = p.compiler.compile(all[i].text);
    p.compile[i] = std::min(p.compile[i], cpu_now() - start);
    auto program = device.load({code, all[i].signature});
    for (int k = 0; k < 3; ++k) {
      start = now();
      device.wait(program->launch(all[i].buffers, all[i].scalars));
      p.run[i] = std::min(p.run[i], now() - start);
    }
  }
}

double sum(const std::vector<double>& v) { return std::accumulate(v.begin(), v.end(), 0.0); }

}  // namespace

void pipelines() {
  runtime::Device& device = runtime::device("CPU");
  std::vector<Text> all = texts(device);
  std::deque<Pipeline> tried;
  auto add = [&](const char* name, const char* passes, int level = 2) {
    tried.emplace_back(name, passes, level, all.size());
  };
  add("default<O3>", "default<O3>", 3);
  add("default<O2>", "default<O2>");
  add("default<O1>", "default<O1>");
  add("the default here", "");
  add("the default here, code generation O1", "", 1);
  add("sroa,early-cse,instcombine,licm,simplifycfg",
      "function(sroa,early-cse,instcombine<no-verify-fixpoint>,loop-mssa(licm),simplifycfg)");
  add("mem2reg,early-cse,instsimplify,licm", "function(mem2reg,early-cse,instsimplify,loop-mssa(licm))");
  add("mem2reg,early-cse,licm", "function(mem2reg,early-cse,loop-mssa(licm))");
  add("mem2reg,early-cse", "function(mem2reg,early-cse)");
  add("mem2reg", "function(mem2reg)");
  add("nothing", "function(no-op-function)");
  // In turns: a busy moment of the machine then meets them all.
  for (int round = 0; round < 5; ++round)
    for (Pipeline& p : tried) measure(all, device, p);
  const Pipeline& most = tried.front();
  double compile = sum(most.compile) * 1e3, run = sum(most.run) * 1e3;
  for (const Pipeline& p : tried) {
    print({fmt::format("{}: compiling {} kernels", p.name, all.size()), sum(p.compile) * 1e3, "ms", compile,
           true, "rival", compile});
    print({fmt::format("{}: running them", p.name), sum(p.run) * 1e3, "ms", run * 1.05, true, "rival", run});
  }
}

}  // namespace pg::bench
