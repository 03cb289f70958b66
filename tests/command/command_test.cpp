// The command as its user meets it: what it prints where, and its exit status.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/flags.h"
#include <pangrad/safetensors.h>
#include <pangrad/tensor.h>
#include <pangrad/version.h>

namespace pg {
namespace {

namespace fs = std::filesystem;

struct Outcome {
  int status;
  std::string out, err;
};

class Command : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "pangrad-test-XXXXXX").string();
    ASSERT_TRUE(mkdtemp(name.data()));
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  // Runs `pangrad <arguments>`, which is built beside this test.
  Outcome run(const std::string& arguments) const {
    fs::path program = fs::read_symlink("/proc/self/exe").parent_path() / "pangrad", err = folder_ / "err";
    std::string line = program.string() + " " + arguments + " 2>" + err.string();
    std::FILE* pipe = popen(line.c_str(), "r");
    std::string out;
    char buffer[4096];
    while (size_t got = std::fread(buffer, 1, sizeof buffer, pipe)) out.append(buffer, got);
    int status = pclose(pipe);
    std::ifstream in(err);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, out, {std::istreambuf_iterator<char>(in), {}}};
  }
  // Its only line on standard error, when it fails as it should.
  std::string failure(const std::string& arguments) const {
    Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.status, 1);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1) << outcome.err;
    return outcome.err.substr(0, outcome.err.size() - 1);
  }

  fs::path folder_;
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_F(Command, CacheShowsAndTrims) {
  std::string file = (folder_ / "cache.db").string();
  auto with = [&](const char* level, const std::string& arguments) {
    ::setenv("CACHEDB", file.c_str(), 1), ::setenv("CACHE", level, 1);
    Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    ::setenv("CACHE", "1", 1), ::unsetenv("CACHEDB");
    return outcome.out;
  };
  EXPECT_TRUE(contains(with("2", "cache"), file + ": 0 kernels"));
  {
    ScopedFlag place("CACHEDB", file), on("CACHE", 2);
    EXPECT_EQ((Tensor::of({1.f, 2.f}) * 1.25f).to_vector<float>(), (std::vector<float>{1.25f, 2.5f}));
  }
  EXPECT_TRUE(contains(with("2", "cache --trim 1G"), ": 1 kernels"));
  EXPECT_TRUE(contains(with("2", "cache --clear"), ": 0 kernels"));
  EXPECT_TRUE(contains(with("1", "cache"), "nothing is kept"));
  EXPECT_TRUE(contains(failure("cache --trim lots"), "lots"));
}

TEST_F(Command, VersionAndHelp) {
  EXPECT_EQ(run("--version").out, "pangrad " PANGRAD_VERSION "\n");
  Outcome help = run("--help");
  EXPECT_EQ(help.status, 0);
  EXPECT_TRUE(contains(help.out, "train") && contains(help.out, "devices")) << help.out;
  EXPECT_TRUE(contains(run("train fashion-mnist --help").out, "--optimizer"));
}

TEST_F(Command, ListsDevices) {
  Outcome devices = run("devices");
  EXPECT_EQ(devices.status, 0) << devices.err;
  EXPECT_TRUE(contains(devices.out, "CPU      works, and is the default\n")) << devices.out;
  EXPECT_TRUE(contains(devices.out, "DISK     takes a path, as in DISK:/tmp/file\n")) << devices.out;
}

TEST_F(Command, MistakesAreOneLine) {
  EXPECT_EQ(failure(""), "pangrad: A subcommand is required (pangrad --help lists what there is)");
  EXPECT_EQ(failure("trian"), "pangrad: there is no command trian (pangrad --help lists what there is)");
  EXPECT_TRUE(
      contains(failure("train fashion-mnist --optimizer none"), "--optimizer: none not in {sgd,adam"));
  EXPECT_TRUE(
      contains(failure("train fashion-mnist --steps -3"), "--steps: -3 is no whole number from 0 on"));
  EXPECT_TRUE(contains(failure("train fashion-mnist --steps x"), "--steps: x is no whole number from 0 on"));
  EXPECT_TRUE(contains(failure("train fashion-mnist --batch 0"), "--batch: 0 is no whole number from 1 on"));
  EXPECT_TRUE(contains(failure("train fashion-mnist --device TOASTER"), "TOASTER"));
  std::string file = (folder_ / "x").string();
  EXPECT_EQ(failure("train fashion-mnist --device DISK:" + file),
            "pangrad: [train] DISK:" + file + " computes nothing");
  EXPECT_FALSE(fs::exists(file));
  EXPECT_EQ(failure("train fashion-mnist --save " + file + "/y"),
            "pangrad: [train] " + file + "/y: cannot be written");
  std::string missing = failure("train fashion-mnist --data " + folder_.string());
  EXPECT_TRUE(contains(missing, "train-images-idx3-ubyte.gz: is not there; install")) << missing;
}

// Noise and a bright half: enough to run, too little to learn from.
void write_pictures(const fs::path& folder, const std::string& part, int count) {
  auto number = [](int n) { return std::string{0, 0, static_cast<char>(n >> 8), static_cast<char>(n)}; };
  std::ofstream images(folder / (part + "-images-idx3-ubyte"), std::ios::binary);
  std::ofstream labels(folder / (part + "-labels-idx1-ubyte"), std::ios::binary);
  images << std::string{0, 0, 8, 3} << number(count) << number(28) << number(28);
  labels << std::string{0, 0, 8, 1} << number(count);
  unsigned state = 1;
  for (int i = 0; i < count; i++) {
    labels.put(static_cast<char>(i % 2));
    for (int k = 0; k < 28 * 28; k++) {
      state = state * 1664525 + 1013904223;
      images.put(static_cast<char>((state >> 26) + (k / 392 == i % 2 ? 100 : 0)));
    }
  }
}

TEST_F(Command, TrainsAndSaves) {
  write_pictures(folder_, "train", 32);
  write_pictures(folder_, "t10k", 10);
  fs::path file = folder_ / "net.safetensors";
  Outcome trained = run("train fashion-mnist --steps 3 --batch 8 --lr 0.001 --seed 5 --data " +
                        folder_.string() + " --save " + file.string());
  EXPECT_EQ(trained.status, 0) << trained.err;
  EXPECT_TRUE(contains(trained.out, "32 pictures to train with, 10 to test; 87850 parameters on CPU\n"))
      << trained.out;
  EXPECT_TRUE(contains(trained.out, "test accuracy ")) << trained.out;
  EXPECT_TRUE(contains(trained.out, "saved to " + file.string())) << trained.out;
  EXPECT_TRUE(contains(trained.err, "training 3/3  loss ")) << trained.err;
  EXPECT_EQ(trained.err.find('\x1b'), std::string::npos);
  StateDict state = safe_load(file);
  EXPECT_EQ(state.at("conv1.weight").shape(), (Shape{32, 1, 5, 5}));
  EXPECT_EQ(state.at("norm2.num_batches_tracked").item<std::int64_t>(), 3);
}

TEST_F(Command, TheSeedDecides) {
  write_pictures(folder_, "train", 32);
  write_pictures(folder_, "t10k", 10);
  auto losses = [&](int seed) {
    std::string err = run("train fashion-mnist --steps 2 --batch 8 --seed " + std::to_string(seed) +
                          " --data " + folder_.string())
                          .err;
    size_t at = err.rfind("loss ");
    return at == std::string::npos ? err : err.substr(at, 10);
  };
  EXPECT_EQ(losses(3), losses(3));
  EXPECT_NE(losses(3), losses(4));
}

}  // namespace
}  // namespace pg
