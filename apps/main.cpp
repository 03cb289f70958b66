// The command `pangrad`: reads the command line and calls what it names. Whatever goes wrong is one line on
// standard error and the exit status 1.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/flags.h"
#include "commands.h"
#include "rewrite/trace.h"
#include "runtime/device.h"
#include <pangrad/version.h>

namespace pg::apps {
namespace {

// The canonical name of a device to compute on.
std::string computing(const std::string& device) {
  runtime::Device& opened = runtime::device(device);
  if (opened.languages().empty())
    throw DeviceError(fmt::format("[train] {} computes nothing", opened.name()));
  return opened.name();
}

// Refuses what is no whole number from `smallest` on, in words that fit on a line.
CLI::Validator whole_from(std::int64_t smallest) {
  auto check = [smallest](const std::string& text) {
    std::int64_t value = 0;
    if (CLI::detail::lexical_cast(text, value) && value >= smallest) return std::string();
    return fmt::format("{} is no whole number from {} on", text, smallest);
  };
  return CLI::Validator(check, fmt::format("from {}", smallest));
}

int failed(std::string message) {
  std::replace(message.begin(), message.end(), '\n', ' ');
  std::fflush(stdout);
  fmt::print(stderr, "pangrad: {}\n", message);
  return 1;
}

void add_train(CLI::App& app, TrainOptions& options, std::string& device) {
  CLI::App* train = app.add_subcommand("train", "Train a network");
  train->require_subcommand(1);
  CLI::App* mnist = train->add_subcommand(
      "fashion-mnist", "A small convolutional network on Fashion-MNIST; prints its accuracy");
  mnist->add_option("--steps", options.steps, "Steps to train")->check(whole_from(0))->capture_default_str();
  mnist->add_option("--batch", options.batch, "Pictures drawn for each step")
      ->check(whole_from(1))
      ->capture_default_str();
  mnist->add_option("--lr", options.lr, "Learning rate; the optimizer's own if not given")
      ->check(CLI::NonNegativeNumber);
  mnist->add_option("--optimizer", options.optimizer, "How the weights are changed")
      ->check(CLI::IsMember({"sgd", "adam", "adamw", "lamb", "muon"}))
      ->capture_default_str();
  mnist->add_option("--device", device,
                    "Device to train on, as `pangrad devices` lists them; else that of DEV");
  mnist->add_option("--seed", options.seed, "Seed of all that is random")->capture_default_str();
  mnist->add_option("--data", options.data, "Folder of the data set; else that of FASHION_MNIST");
  mnist->add_option("--save", options.save, "File (safetensors) to save the trained network to");
  mnist->callback([&options, &device] {
    std::optional<ScopedFlag> chosen;
    if (!device.empty()) chosen.emplace("DEV", computing(device));
    train_fashion_mnist(options);
  });
}

int run(int argc, char** argv) {
  CLI::App app("pangrad: deep learning in C++");
  app.name("pangrad");
  app.set_version_flag("--version", "pangrad " PANGRAD_VERSION, "Print the version");
  app.require_subcommand(1);
  TrainOptions options;
  std::string device;
  add_train(app, options, device);
  app.add_subcommand("devices", "List the devices: what is there, what opened, why not")
      ->callback(show_devices);
  std::optional<std::int64_t> trim_to;
  bool clear = false;
  CLI::App* cache =
      app.add_subcommand("cache", "What the cache of compiled kernels takes, and how to trim it");
  CLI::Option* trim = cache->add_option(
      "--trim", trim_to, "Drop what was not used for longest until it takes so many bytes (512M)");
  trim->transform(CLI::AsSizeValue(false))->check(CLI::NonNegativeNumber);
  cache->add_flag("--clear", clear, "Drop all of it")->excludes(trim);
  cache->callback([&trim_to, &clear] { show_cache(clear ? 0 : trim_to); });
  CLI::App* trace =
      app.add_subcommand("trace", "Look at a trace of graph rewrites, as TRACE=FILE writes one");
  trace->require_subcommand(1);
  std::string file;
  CLI::App* show = trace->add_subcommand("show", "Passes, the rules that fired, and the time they took");
  show->add_option("FILE", file, "The trace")->required();
  show->callback([&file] { fmt::print("{}", trace_summary(read_trace(file))); });
  try {
    app.parse(argc, argv);
    return 0;
  } catch (const CLI::Success& e) {
    return app.exit(e);
  } catch (const CLI::RequiredError& e) {
    std::vector<std::string> rest = app.remaining(true);
    return failed(fmt::format("{} (pangrad --help lists what there is)",
                              rest.empty() ? e.what() : fmt::format("there is no command {}", rest[0])));
  } catch (const CLI::ParseError& e) {
    return failed(fmt::format("{} (pangrad --help lists what there is)", e.what()));
  }
}

}  // namespace
}  // namespace pg::apps

int main(int argc, char** argv) {
  try {
    return pg::apps::run(argc, argv);
  } catch (const std::bad_alloc&) {
    return pg::apps::failed("out of memory");
  } catch (const std::exception& e) {
    return pg::apps::failed(e.what());
  }
}
