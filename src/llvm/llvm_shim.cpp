// LLVM behind the C ABI of llvm_shim.h. One context and one target machine per call, the machines reused;
// nothing here keeps state between compiles, so calls from several threads do not meet except at the list of
// idle machines.
#include "runtime/cpu/llvm_shim.h"

#include <csetjmp>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <llvm-c/Analysis.h>
#include <llvm-c/Core.h>
#include <llvm-c/ErrorHandling.h>
#include <llvm-c/IRReader.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>

#define PG_LLVM_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

// Loops arrive vectorised and unrolled, so what is left is to promote accumulators to registers, share
// address arithmetic and move it out of loops. `pangrad-bench pipelines` compares: on 118 kernels of
// ResNet-50 and of a training step (milliseconds of compiling; the kernels themselves take the same within 5
// %)
//   default<O3> 1513, default<O2> 1477, default<O1> 1415, this 760, mem2reg alone 750, nothing 765
// and with sroa, instcombine and simplifycfg on top 815. What remains is code generation: instruction
// selection takes half of it. At level 1 it is 3 % faster.
constexpr char kDefaultPasses[] = "function(mem2reg,early-cse,instsimplify,loop-mssa(licm))";

char* copy_text(const char* text, size_t bytes) {
  auto* copy = static_cast<char*>(malloc(bytes + 1));
  if (copy == nullptr) return nullptr;
  memcpy(copy, text, bytes);
  copy[bytes] = 0;
  return copy;
}
char* copy_text(const std::string& text) { return copy_text(text.data(), text.size()); }

// Takes over a string that LLVM allocated.
std::string take(char* message) {
  std::string text = message != nullptr ? message : "";
  LLVMDisposeMessage(message);
  return text;
}

// --- fatal errors
// ---------------------------------------------------------------------------------------------------- LLVM
// ends the process after its handler returns, so the handler leaves by longjmp to the compile that runs on
// this thread. Where none does, the error belongs to another user of the same LLVM, and it takes its usual
// course.

struct Rescue {
  jmp_buf frame;
  char* reason;
};
thread_local Rescue* rescue = nullptr;

void on_fatal_error(const char* reason) {
  if (rescue == nullptr) return;
  rescue->reason = copy_text(reason, strlen(reason));
  longjmp(rescue->frame, 1);
}

// Calls `work(argument)` and returns null, or the reason of a fatal error met inside, to be freed. What
// `work` held by then is lost, so nothing in it may own a lock.
char* guard(void (*work)(void*), void* argument) {
  Rescue here{};
  rescue = &here;
  if (setjmp(here.frame) == 0) {
    work(argument);
    rescue = nullptr;
    return nullptr;
  }
  rescue = nullptr;
  return here.reason != nullptr ? here.reason : copy_text("out of memory");
}

void initialize_once() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInstallFatalErrorHandler(on_fatal_error);
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeX86AsmParser();
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
    LLVMInitializeAArch64AsmParser();
  });
}

LLVMAttributeRef enum_attribute(LLVMContextRef context, const char* name) {
  return LLVMCreateEnumAttribute(context, LLVMGetEnumAttributeKindForName(name, strlen(name)), 0);
}

// Hidden definitions are reached without a table of offsets; "no-builtins" keeps loops from becoming memset
// and memcpy, which nobody would provide; without unwinding there are no tables for it either.
void prepare_module(LLVMContextRef context, LLVMModuleRef module) {
  constexpr char kNoBuiltins[] = "no-builtins";
  LLVMAttributeRef no_builtins =
      LLVMCreateStringAttribute(context, kNoBuiltins, sizeof(kNoBuiltins) - 1, "", 0);
  LLVMAttributeRef no_unwind = enum_attribute(context, "nounwind");
  auto hide = [](LLVMValueRef value) {
    if (LLVMGetLinkage(value) == LLVMExternalLinkage) LLVMSetVisibility(value, LLVMHiddenVisibility);
  };
  for (LLVMValueRef f = LLVMGetFirstFunction(module); f != nullptr; f = LLVMGetNextFunction(f)) {
    if (LLVMIsDeclaration(f)) continue;
    hide(f);
    LLVMAddAttributeAtIndex(f, LLVMAttributeIndex(LLVMAttributeFunctionIndex), no_builtins);
    LLVMAddAttributeAtIndex(f, LLVMAttributeIndex(LLVMAttributeFunctionIndex), no_unwind);
  }
  for (LLVMValueRef g = LLVMGetFirstGlobal(module); g != nullptr; g = LLVMGetNextGlobal(g)) {
    if (!LLVMIsDeclaration(g)) hide(g);
  }
}

// Errors that LLVM reports to the context rather than to its caller: bad inline assembly, impossible register
// constraints.
void on_diagnostic(LLVMDiagnosticInfoRef info, void* errors) {
  if (LLVMGetDiagInfoSeverity(info) != LLVMDSError) return;
  auto& text = *static_cast<std::string*>(errors);
  if (!text.empty()) text += '\n';
  text += take(LLVMGetDiagInfoDescription(info));
}

}  // namespace

struct pg_llvm_compiler {
  LLVMTargetRef target = nullptr;
  std::string triple, cpu, features, passes;
  LLVMCodeGenOptLevel level = LLVMCodeGenLevelDefault;
  std::mutex mutex;
  std::vector<LLVMTargetMachineRef> idle;  // a machine serves one compile at a time

  LLVMTargetMachineRef create_machine() const {
    return LLVMCreateTargetMachine(target, triple.c_str(), cpu.c_str(), features.c_str(), level, LLVMRelocPIC,
                                   LLVMCodeModelSmall);
  }
  LLVMTargetMachineRef acquire() {
    {
      const std::lock_guard lock(mutex);
      if (!idle.empty()) {
        LLVMTargetMachineRef machine = idle.back();
        idle.pop_back();
        return machine;
      }
    }
    return create_machine();
  }
  void release(LLVMTargetMachineRef machine) {
    const std::lock_guard lock(mutex);
    idle.push_back(machine);
  }
};

namespace {

struct Job {
  pg_llvm_compiler* compiler;
  LLVMTargetMachineRef machine;
  const char* text;
  size_t bytes;
  pg_llvm_output output;
  pg_llvm_buffer result{};
  std::string error;
};

// The module parsed, checked, optimised and emitted, or job.error.
void compile_module(Job& job, LLVMContextRef context, LLVMModuleRef& module) {
  LLVMMemoryBufferRef source = LLVMCreateMemoryBufferWithMemoryRangeCopy(job.text, job.bytes, "kernel");
  char* message = nullptr;
  if (LLVMParseIRInContext(context, source, &module, &message)) {  // takes the buffer
    job.error = take(message);
    return;
  }
  LLVMSetTarget(module, job.compiler->triple.c_str());
  LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(job.machine);
  LLVMSetModuleDataLayout(module, layout);
  LLVMDisposeTargetData(layout);
  prepare_module(context, module);
  if (LLVMVerifyModule(module, LLVMReturnStatusAction, &message)) {
    job.error = take(message);
    return;
  }
  LLVMDisposeMessage(message);
  if (!job.compiler->passes.empty()) {
    LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
    LLVMErrorRef failed = LLVMRunPasses(module, job.compiler->passes.c_str(), job.machine, options);
    LLVMDisposePassBuilderOptions(options);
    if (failed != nullptr) {
      char* text = LLVMGetErrorMessage(failed);
      job.error = text;
      LLVMDisposeErrorMessage(text);
      return;
    }
  }
  if (job.output == PG_LLVM_IR) {
    const std::string text = take(LLVMPrintModuleToString(module));
    job.result = {copy_text(text), text.size()};
    return;
  }
  LLVMMemoryBufferRef emitted = nullptr;
  const LLVMCodeGenFileType type = job.output == PG_LLVM_OBJECT ? LLVMObjectFile : LLVMAssemblyFile;
  if (LLVMTargetMachineEmitToMemoryBuffer(job.machine, module, type, &message, &emitted)) {
    job.error = take(message);
    return;
  }
  if (job.error.empty())
    job.result = {copy_text(LLVMGetBufferStart(emitted), LLVMGetBufferSize(emitted)),
                  LLVMGetBufferSize(emitted)};
  LLVMDisposeMemoryBuffer(emitted);
}

void compile_job(void* argument) {
  auto& job = *static_cast<Job*>(argument);
  LLVMContextRef context = LLVMContextCreate();
  LLVMContextSetDiagnosticHandler(context, on_diagnostic, &job.error);
  LLVMModuleRef module = nullptr;
  compile_module(job, context, module);
  if (module != nullptr) LLVMDisposeModule(module);
  LLVMContextDispose(context);
}

void fail(char** error, const std::string& message) {
  if (error != nullptr) *error = copy_text(message);
}

std::string option(const char* value, const char* fallback) { return value != nullptr ? value : fallback; }

}  // namespace

PG_LLVM_EXPORT int pg_llvm_abi(void) { return PG_LLVM_ABI; }

PG_LLVM_EXPORT const char* pg_llvm_version(void) {
  static const std::string version = [] {
    unsigned major = 0, minor = 0, patch = 0;
    LLVMGetVersion(&major, &minor, &patch);
    return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
  }();
  return version.c_str();
}

PG_LLVM_EXPORT pg_llvm_compiler* pg_llvm_create(const pg_llvm_options* options, char** error) {
  initialize_once();
  auto compiler = std::make_unique<pg_llvm_compiler>();
  compiler->triple = options->triple != nullptr ? options->triple : take(LLVMGetDefaultTargetTriple());
  compiler->cpu = option(options->cpu, "native");
  compiler->features = option(options->features, "");
  compiler->passes = option(options->passes, kDefaultPasses);
  if (options->level < 0 || options->level > 3) {
    fail(error, "level " + std::to_string(options->level) + " is not between 0 and 3");
    return nullptr;
  }
  compiler->level = static_cast<LLVMCodeGenOptLevel>(options->level);
  char* message = nullptr;
  if (LLVMGetTargetFromTriple(compiler->triple.c_str(), &compiler->target, &message)) {
    fail(error, take(message));
    return nullptr;
  }
  if (compiler->cpu == "native") {
    compiler->cpu = take(LLVMGetHostCPUName());
    std::string host = take(LLVMGetHostCPUFeatures());
    compiler->features = compiler->features.empty() ? host : host + "," + compiler->features;
  }

  // One machine is made now, so that what LLVM refuses is refused here; an empty module proves the pass
  // pipeline.
  Job job{.compiler = compiler.get(),
          .machine = nullptr,
          .text = "",
          .bytes = 0,
          .output = PG_LLVM_OBJECT,
          .result = {},
          .error = {}};
  char* fatal = guard(
      [](void* argument) {
        auto& probe = *static_cast<Job*>(argument);
        probe.machine = probe.compiler->create_machine();
        if (probe.machine == nullptr)
          probe.error = "no code generator for " + probe.compiler->triple;
        else
          compile_job(argument);
      },
      &job);
  free(job.result.data);
  if (fatal != nullptr) {
    if (error != nullptr) *error = fatal;
    return nullptr;
  }
  if (job.machine != nullptr) compiler->release(job.machine);
  if (!job.error.empty()) {
    fail(error, job.error);
    pg_llvm_destroy(compiler.release());
    return nullptr;
  }
  return compiler.release();
}

PG_LLVM_EXPORT void pg_llvm_destroy(pg_llvm_compiler* compiler) {
  if (compiler == nullptr) return;
  for (LLVMTargetMachineRef machine : compiler->idle) LLVMDisposeTargetMachine(machine);
  delete compiler;
}

PG_LLVM_EXPORT int pg_llvm_compile(pg_llvm_compiler* compiler, const char* text, size_t bytes,
                                   pg_llvm_output output, pg_llvm_buffer* out, char** error) {
  Job job{.compiler = compiler,
          .machine = compiler->acquire(),
          .text = text,
          .bytes = bytes,
          .output = output,
          .result = {},
          .error = {}};
  if (char* fatal = guard(compile_job, &job)) {
    if (error != nullptr) *error = fatal;  // the machine may be in any state: it is lost with the rest
    return 1;
  }
  compiler->release(job.machine);
  if (!job.error.empty() || job.result.data == nullptr) {
    fail(error, job.error.empty() ? "out of memory" : job.error);
    free(job.result.data);
    return 1;
  }
  *out = job.result;
  return 0;
}

PG_LLVM_EXPORT void pg_llvm_free(void* memory) { free(memory); }
