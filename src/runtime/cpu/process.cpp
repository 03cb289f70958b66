#include "runtime/cpu/process.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pangrad/error.h>

namespace pg::runtime {
namespace {

[[noreturn]] void fail(const std::string& what, int error) {
  throw DeviceError(fmt::format("[process] {}: {}", what, std::strerror(error)));
}

// A file in memory that stands for a stream of the child: unlike with pipes nobody has to keep up with it,
// and a child that does not read costs no SIGPIPE.
class MemoryFile {
 public:
  explicit MemoryFile(const char* name) {
    const int made = memfd_create(name, MFD_CLOEXEC);
    if (made < 0) fail(name, errno);
    // Not one of the three that the child's streams will be, should the host have closed its own.
    file_ = made > 2 ? made : fcntl(made, F_DUPFD_CLOEXEC, 3);
    if (file_ != made) close(made);
    if (file_ < 0) fail(name, errno);
  }
  ~MemoryFile() { close(file_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  int descriptor() const { return file_; }

  void write(std::string_view text) {
    for (size_t done = 0; done < text.size();) {
      const ssize_t n = pwrite(file_, text.data() + done, text.size() - done, static_cast<off_t>(done));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) fail("writing the input", errno);
      done += static_cast<size_t>(n);
    }
  }
  std::string read() const {
    struct stat info{};
    if (fstat(file_, &info) != 0) fail("reading the output", errno);
    std::string text(static_cast<size_t>(info.st_size), 0);
    for (size_t done = 0; done < text.size();) {
      const ssize_t n = pread(file_, text.data() + done, text.size() - done, static_cast<off_t>(done));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) fail("reading the output", errno);
      done += static_cast<size_t>(n);
    }
    return text;
  }

 private:
  int file_ = -1;
};

int wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return -1;  // the host ignores SIGCHLD or reaps every child
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

ProcessResult run_process(const std::vector<std::string>& arguments, std::string_view input) {
  MemoryFile in("input"), out("output"), errors("errors");
  in.write(input);
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  if (const int error = posix_spawn_file_actions_init(&actions)) fail(arguments[0], error);
  int error = posix_spawn_file_actions_adddup2(&actions, in.descriptor(), 0);
  if (error == 0) error = posix_spawn_file_actions_adddup2(&actions, out.descriptor(), 1);
  if (error == 0) error = posix_spawn_file_actions_adddup2(&actions, errors.descriptor(), 2);
  pid_t child = 0;
  if (error == 0) error = posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) fail(arguments[0], error);
  const int status = wait_for(child);
  return {.status = status, .output = out.read(), .errors = errors.read()};
}

}  // namespace pg::runtime
