// The data sets that come as four IDX files.
#include <string>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "base/flags.h"
#include "formats/file.h"
#include <pangrad/datasets.h>

namespace pg::datasets {
namespace {

namespace fs = std::filesystem;

// The file of that name, plain if it is there, else compressed.
fs::path find(const fs::path& folder, std::string_view name, std::string_view what, std::string_view hint) {
  fs::path plain = folder / name, packed = folder / fmt::format("{}.gz", name);
  std::error_code ignored;
  if (fs::exists(plain, ignored)) return plain;
  if (fs::exists(packed, ignored)) return packed;
  formats::fail(what, packed, "is not there{}", hint);
}

Labeled load(const fs::path& folder, std::string_view part, std::string_view what, std::string_view hint,
             const IdxOptions& options) {
  fs::path images = find(folder, fmt::format("{}-images-idx3-ubyte", part), what, hint);
  fs::path labels = find(folder, fmt::format("{}-labels-idx1-ubyte", part), what, hint);
  Tensor x = idx_load(images, options), y = idx_load(labels, options);
  if (x.dtype() != u8 || x.ndim() != 3)
    formats::fail(what, images, "holds {} {}, not images of bytes", name(x.dtype()), x.shape().str());
  if (y.dtype() != u8 || y.ndim() != 1 || y.size(0) != x.size(0)) {
    formats::fail(what, labels, "holds {} {}, not the classes of {} images", name(y.dtype()), y.shape().str(),
                  x.size(0).str());
  }
  return {x.unsqueeze(1), y};
}

Split load(const fs::path& folder, std::string_view what, std::string_view hint, const IdxOptions& options) {
  return {load(folder, "train", what, hint, options), load(folder, "t10k", what, hint, options)};
}

}  // namespace

Split fashion_mnist(const FashionMnistOptions& options) {
  fs::path folder = options.folder;
  if (folder.empty()) folder = flags::fashion_mnist();
  constexpr std::string_view kHint =
      "; install the Debian package dataset-fashion-mnist, or name the folder of its files in FASHION_MNIST";
  return load(folder, "fashion_mnist", kHint, {.device = options.device});
}

Split mnist(const fs::path& folder, const IdxOptions& options) { return load(folder, "mnist", "", options); }

}  // namespace pg::datasets
