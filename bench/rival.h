// Rivals: other people's programs that time the same work on request, so that both sides take turns in one
// run. Each is a child process that answers a line with a line of JSON (rivals/README.md).
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace pg::bench {

class Rival {
 public:
  /// PyTorch and ONNX Runtime, by the interpreter that PANGRAD_RIVAL_PYTHON names; OpenBLAS and oneDNN, by
  /// the program pangrad-rivals beside this one. Started at the first use, with as many threads as kernels
  /// have.
  static Rival& torch();
  static Rival& onnxruntime();
  static Rival& openblas();
  static Rival& onednn();
  /// Prints what each of them is, or why it is absent.
  static void introduce();

  /// "PyTorch".
  const std::string& name() const { return name_; }
  /// Why there is none; empty if it runs.
  const std::string& absent();

  struct Times {
    std::vector<double> seconds;  // of each run
    std::string problem;          // why there are none
  };
  /// Seconds of runs of a piece of work, for about so long; the first request for it prepares it and runs it
  /// twice. Returns when the rival's threads are at rest, so that they do not disturb what is timed next.
  Times time(const std::string& work, double seconds);
  /// CPU seconds that its process has used.
  double cpu_seconds() const;
  struct Bytes {
    double value = 0;
    std::string problem;
  };
  /// The most memory that some runs of it took beyond what the process had before, in a process of its own.
  Bytes peak_memory(const std::string& work);

 private:
  struct Process;
  Rival(std::string name, std::string library, std::shared_ptr<Process> process);

  std::string name_, library_;
  std::shared_ptr<Process> process_;
};

}  // namespace pg::bench
