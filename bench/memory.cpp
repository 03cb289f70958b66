#include "memory.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>

#include <fmt/format.h>

#include "figure.h"
#include "rival.h"
#include "trainer.h"

namespace pg::bench {
namespace {

// A field of /proc/self/status, in bytes.
double status(const std::string& field) {
  std::ifstream file("/proc/self/status");
  for (std::string word; file >> word;)
    if (word == field + ":") {
      double kilobytes = 0;
      file >> kilobytes;
      return kilobytes * 1024;
    }
  throw std::runtime_error("no " + field + " in /proc/self/status");
}

template <class Trainer>
void run_steps(Trainer& trainer) {
  for (int i = 0; i < 4; ++i) trainer.run().template item<float>();
}

}  // namespace

void print_peak_memory(const std::string& work) {
  // What is loaded at the first use is no part of the work: the device, LLVM.
  (Tensor::randn({64, 64}).matmul(Tensor::randn({64, 64}))).realize();
  std::ofstream("/proc/self/clear_refs") << "5";
  double before = status("VmRSS");
  if (work == "demo") {
    DemoTrainer trainer;
    run_steps(trainer);
  } else if (work == "resnet50") {
    ResNetTrainer trainer(16);
    run_steps(trainer);
  } else {
    throw std::runtime_error("no such work: " + work);
  }
  fmt::print("{}\n", status("VmHWM") - before);
}

void compare_peak_memory(const std::string& name, const std::string& work, const std::string& rival_work,
                         double share) {
  if (!wanted(name)) return;
  Figure f{.name = name, .unit = "MB", .reference_kind = "rival", .by = Rival::torch().name()};
  std::string command =
      fmt::format("'{}' memory {}", std::filesystem::read_symlink("/proc/self/exe").string(), work);
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  double bytes = 0;
  if (!pipe || std::fscanf(pipe.get(), "%lf", &bytes) != 1) f.reason = "our own process failed";
  Rival::Bytes theirs = Rival::torch().peak_memory(rival_work);
  if (f.reason.empty()) f.reason = theirs.problem;
  f.value = bytes * 1e-6, f.reference = theirs.value * 1e-6, f.target = share * f.reference;
  print(f);
}

}  // namespace pg::bench
