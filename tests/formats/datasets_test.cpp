// Data sets: the installed one, folders that lack files, files that do not fit each other.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/flags.h"
#include "formats/files.h"
#include <pangrad/datasets.h>

namespace pg::formats {
namespace {

using namespace std::string_literals;

const std::string kImages = "\0\0\x08\x03\0\0\0\x02\0\0\0\x01\0\0\0\x02"s + "\x01\x02\x03\x04"s;
const std::string kLabels = "\0\0\x08\x01\0\0\0\x02"s + "\x09\x00"s;

void fill(const Folder& folder) {
  folder.write("train-images-idx3-ubyte", kImages);
  folder.write("train-labels-idx1-ubyte.gz", gzip(kLabels));
  folder.write("t10k-images-idx3-ubyte.gz", gzip(kImages));
  folder.write("t10k-labels-idx1-ubyte", kLabels);
}

TEST(Datasets, FourFilesMakeASplit) {
  Folder folder;
  fill(folder);
  datasets::Split data = datasets::mnist(folder / "");
  EXPECT_EQ(data.train.x.shape(), (Shape{2, 1, 1, 2}));
  EXPECT_EQ(data.test.x.to_vector<std::uint8_t>(), (std::vector<std::uint8_t>{1, 2, 3, 4}));
  EXPECT_EQ(data.train.y.to_vector<std::uint8_t>(), (std::vector<std::uint8_t>{9, 0}));
}

TEST(Datasets, FashionMnistIsThePackageOrTheFolderNamed) {
  ScopedFlag usual("FASHION_MNIST", "/usr/share/datasets/fashion-mnist");
  if (!fs::exists("/usr/share/datasets/fashion-mnist"))
    GTEST_SKIP() << "dataset-fashion-mnist is not installed";
  datasets::Split data = datasets::fashion_mnist();
  EXPECT_EQ(data.train.x.shape(), (Shape{60000, 1, 28, 28}));
  EXPECT_EQ(data.test.y.shape(), (Shape{10000}));
  Tensor classes = data.train.y.one_hot(10).sum(0);
  EXPECT_EQ(classes.to_vector<std::int32_t>(), std::vector<std::int32_t>(10, 6000));

  Folder folder;
  fill(folder);
  ScopedFlag other("FASHION_MNIST", (folder / "").string());
  EXPECT_EQ(datasets::fashion_mnist().train.x.size(0), 2);
}

TEST(Datasets, AMissingPackageSaysWhatToInstall) {
  Folder folder;
  fs::path file = folder / "train-images-idx3-ubyte.gz";
  EXPECT_EQ(
      file_error(file, [&] { datasets::fashion_mnist({.folder = folder / ""}); }),
      "is not there; install the Debian package dataset-fashion-mnist, or name the folder of its files in "
      "FASHION_MNIST");
  EXPECT_EQ(file_error(file, [&] { datasets::mnist(folder / ""); }), "is not there");
}

TEST(Datasets, FilesThatDoNotFitEachOther) {
  Folder folder;
  fill(folder);
  fs::path labels = folder.write("t10k-labels-idx1-ubyte", "\0\0\x08\x01\0\0\0\x01\x05"s);
  EXPECT_EQ(file_error(labels, [&] { datasets::mnist(folder / ""); }),
            "holds u8 (1), not the classes of 2 images");
  fs::path images = folder.write("t10k-images-idx3-ubyte", kLabels);
  EXPECT_EQ(file_error(images, [&] { datasets::mnist(folder / ""); }), "holds u8 (2), not images of bytes");
}

}  // namespace
}  // namespace pg::formats
