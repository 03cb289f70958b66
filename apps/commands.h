// The subcommands of `pangrad`, once the command line has been read. They write results to standard output
// and progress to standard error, and throw what the library throws.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace pg::apps {

struct TrainOptions {
  std::int64_t steps = 140;
  std::int64_t batch = 512;
  std::optional<double> lr;  // else the optimiser's own
  std::string optimizer = "adam";
  std::uint64_t seed = 0;
  std::string data;  // folder of the data set; empty: where it usually is
  std::string save;  // file to save the network to; empty: none
};
/// Trains the demo network on Fashion-MNIST and prints its accuracy on the pictures to test with.
void train_fashion_mnist(const TrainOptions& options);

/// Prints a line for each kind of device.
void show_devices();

/// Prints what the caches take, after the one on disk was trimmed to so many bytes if a number is given.
void show_cache(std::optional<std::int64_t> trim_to);

}  // namespace pg::apps
