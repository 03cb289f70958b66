#include "rival.h"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "figure.h"
#include "limits.h"

namespace pg::bench {
namespace {

constexpr double kAnswerSeconds = 120;

std::string beside_this_program(const char* name) {
  return (std::filesystem::read_symlink("/proc/self/exe").parent_path() / name).string();
}

}  // namespace

// A child that is asked through its standard input.
struct Rival::Process {
  using Command = std::vector<std::string>(std::string& problem);
  Command* command;
  std::string problem;
  bool started = false;
  nlohmann::json facts;  // what it said of itself

  explicit Process(Command* c) : command(c) {}
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process() { end(); }

  // `tuned`: memory that is let go stays with the process, in large pages, so that runs after the first find
  // their outputs allocated, as ours do. That is kinder than how it usually runs, and not for measuring
  // memory.
  void start(bool tuned) {
    if (started) return;
    started = true;
    // Threads of OpenMP spin some 20 ms at the end of a loop unless told otherwise, also when the one they
    // wait for waits for their core: on a busy machine that would be all there is to measure.
    std::vector<std::string> words{"env", fmt::format("OMP_NUM_THREADS={}", threads()),
                                   "GOMP_SPINCOUNT=10000"};
    if (tuned)
      words.insert(words.end(), {"MALLOC_MMAP_MAX_=0", "MALLOC_TRIM_THRESHOLD_=1000000000000",
                                 "GLIBC_TUNABLES=glibc.malloc.hugetlb=1"});
    for (std::string& w : command(problem)) words.push_back(std::move(w));
    if (!problem.empty()) return;
    int to[2], from[2];
    if (::pipe2(to, O_CLOEXEC) != 0 || ::pipe2(from, O_CLOEXEC) != 0) {
      problem = "no pipe";
      return;
    }
    std::vector<char*> arguments;
    for (auto& w : words) arguments.push_back(w.data());
    arguments.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(to[0], 0), ::dup2(from[1], 1);
      ::execvp(arguments[0], arguments.data());
      ::_exit(127);
    }
    ::close(to[0]), ::close(from[1]);
    in_ = to[1], out_ = from[0];
    std::signal(SIGPIPE, SIG_IGN);
    facts = ask(fmt::format("info {}", threads()));
    if (problem.empty() && facts.contains("error")) problem = facts["error"].get<std::string>();
  }

  // The answer to a line. If there is none, `problem` says why and the process is over.
  nlohmann::json ask(std::string line) {
    line += '\n';
    for (std::size_t done = 0; done < line.size();) {
      ssize_t n = ::write(in_, line.data() + done, line.size() - done);
      if (n <= 0) return give_up("it has ended");
      done += static_cast<std::size_t>(n);
    }
    std::string answer;
    for (double deadline = now() + kAnswerSeconds;;) {
      pollfd waiting{out_, POLLIN, 0};
      double left = deadline - now();
      if (left <= 0 || ::poll(&waiting, 1, static_cast<int>(left * 1e3) + 1) == 0)
        return give_up(fmt::format("no answer in {:.0f} seconds", kAnswerSeconds));
      char buffer[4096];
      ssize_t n = ::read(out_, buffer, sizeof buffer);
      if (n <= 0) return give_up("it has ended");
      answer.append(buffer, static_cast<std::size_t>(n));
      if (answer.back() == '\n') break;
    }
    nlohmann::json parsed = nlohmann::json::parse(answer, nullptr, false);
    return parsed.is_object() ? parsed : give_up("it answered: " + answer.substr(0, 200));
  }

  double cpu_seconds() const {
    clockid_t clock;
    timespec t{};
    if (pid_ <= 0 || ::clock_getcpuclockid(pid_, &clock) != 0 || ::clock_gettime(clock, &t) != 0) return 0;
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  }

  // Until the process uses no time: its threads may spin for a while after each piece of work.
  void rest() const {
    double before = cpu_seconds();
    for (double deadline = now() + 0.5; now() < deadline;) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      double after = cpu_seconds();
      if (after - before < 50e-6) return;
      before = after;
    }
  }

  void end() {
    if (pid_ <= 0) return;
    ::close(in_), ::close(out_);
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  nlohmann::json give_up(const std::string& why) {
    if (problem.empty()) problem = why;
    end();
    return nlohmann::json::object();
  }

  pid_t pid_ = 0;
  int in_ = -1, out_ = -1;
};

Rival::Rival(std::string name, std::string library, std::shared_ptr<Process> process)
    : name_(std::move(name)), library_(std::move(library)), process_(std::move(process)) {}

namespace {

std::vector<std::string> python_command(std::string& problem) {
  const char* python = std::getenv("PANGRAD_RIVAL_PYTHON");
  if (!python || !*python) {
    problem = "PANGRAD_RIVAL_PYTHON names no interpreter; `./run bench` installs one";
    return {};
  }
  return {python, "-u", "-B", PANGRAD_RIVALS "/server.py"};
}

std::vector<std::string> native_command(std::string& problem) {
  std::string program = beside_this_program("pangrad-rivals");
  if (!std::filesystem::exists(program)) {
    problem = "pangrad-rivals was not built: it needs libopenblas-dev and libdnnl-dev";
    return {};
  }
  return {program};
}

}  // namespace

// The processes live as long as the program; two rivals share one.
Rival& Rival::torch() {
  static Rival rival("PyTorch", "torch", std::make_shared<Process>(python_command));
  return rival;
}
Rival& Rival::onnxruntime() {
  static Rival rival("ONNX Runtime", "onnxruntime", torch().process_);
  return rival;
}
Rival& Rival::openblas() {
  static Rival rival("OpenBLAS", "openblas", std::make_shared<Process>(native_command));
  return rival;
}
Rival& Rival::onednn() {
  static Rival rival("oneDNN", "onednn", openblas().process_);
  return rival;
}

void Rival::introduce() {
  for (Rival* r : {&torch(), &onnxruntime(), &openblas(), &onednn()}) {
    std::string absent = r->absent();
    if (!absent.empty()) {
      print_fact(fmt::format("\"rival\": {}, \"absent\": {}", json_text(r->name_), json_text(absent)));
      continue;
    }
    const auto& facts = r->process_->facts;
    print_fact(fmt::format("\"rival\": {}, \"version\": {}, \"threads\": {}", json_text(r->name_),
                           json_text(facts["versions"].value(r->library_, "")), facts.value("threads", 0)));
  }
  print_fact(fmt::format("\"pangrad\": {}, \"threads\": {}", json_text(PANGRAD_VERSION_TEXT), threads()));
}

const std::string& Rival::absent() {
  process_->start(true);
  static thread_local std::string why;
  why = process_->problem;
  if (why.empty() && process_->facts["versions"].value(library_, "").empty())
    why = process_->facts["absent"].value(library_, name_ + " is not installed");
  return why;
}

double Rival::cpu_seconds() const { return process_->cpu_seconds(); }

Rival::Times Rival::time(const std::string& work, double seconds) {
  Times times;
  times.problem = absent();
  if (!times.problem.empty()) return times;
  nlohmann::json answer = process_->ask(fmt::format("time {} {} {}", seconds, library_, work));
  if (answer.contains("error"))
    times.problem = name_ + ": " + answer["error"].get<std::string>();
  else if (answer.contains("times"))
    times.seconds = answer["times"].get<std::vector<double>>();
  if (times.seconds.empty() && times.problem.empty()) times.problem = name_ + ": " + process_->problem;
  process_->rest();
  return times;
}

Rival::Bytes Rival::peak_memory(const std::string& work) {
  Bytes bytes;
  bytes.problem = absent();
  if (!bytes.problem.empty()) return bytes;
  Process fresh(process_->command);
  fresh.start(false);
  nlohmann::json answer = fresh.problem.empty() ? fresh.ask(fmt::format("memory {} {}", library_, work))
                                                : nlohmann::json::object();
  if (answer.contains("error"))
    bytes.problem = name_ + ": " + answer["error"].get<std::string>();
  else if (answer.contains("bytes"))
    bytes.value = answer["bytes"].get<double>();
  else
    bytes.problem = name_ + ": " + fresh.problem;
  return bytes;
}

}  // namespace pg::bench
