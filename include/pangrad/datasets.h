// Data sets, and the IDX files that some of them come as.
#pragma once

#include <filesystem>
#include <string>

#include <pangrad/error.h>
#include <pangrad/tensor.h>

namespace pg {

struct IdxOptions {
  std::string device = {};
};
/// The array in an IDX file, plain or compressed by gzip, of the dtype it has there. Throws FileError with
/// the path and the byte (of the decompressed contents) at which it is malformed or ends.
PG_API Tensor idx_load(const std::filesystem::path& path, const IdxOptions& options = {});

namespace datasets {

/// Images (n, channels, height, width) and their classes (n), both u8.
struct Labeled {
  Tensor x, y;
  void fields(auto&& field) { field("x", x), field("y", y); }
};
struct Split {
  Labeled train, test;
  void fields(auto&& field) { field("train", train), field("test", test); }
};

struct FashionMnistOptions {
  /// Empty: that of the variable FASHION_MNIST, else where Debian's package dataset-fashion-mnist puts it.
  std::filesystem::path folder = {};
  std::string device = {};
};
/// Zalando's articles: 60000 images of 28x28 in ten classes to train with, 10000 to test. Throws FileError,
/// which for missing files says what to install.
PG_API Split fashion_mnist(const FashionMnistOptions& options = {});
/// Handwritten digits, or whatever comes in four files of their names (train-images-idx3-ubyte and so on,
/// with or without .gz). Throws FileError.
PG_API Split mnist(const std::filesystem::path& folder, const IdxOptions& options = {});

}  // namespace datasets
}  // namespace pg
