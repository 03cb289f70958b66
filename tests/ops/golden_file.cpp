#include "ops/golden_file.h"

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace pg::ops {
namespace {

Scalar parse(DType t, const std::string& word) {
  if (is_float(t)) return float_scalar(eval::rounded(t, std::strtod(word.c_str(), nullptr)));
  return int_scalar(t == u64 ? static_cast<std::int64_t>(std::strtoull(word.c_str(), nullptr, 10))
                             : std::strtoll(word.c_str(), nullptr, 10));
}

}  // namespace

std::map<std::string, Golden> read_golden(const std::string& file) {
  std::map<std::string, Golden> out;
  std::ifstream in(PG_SOURCE_DIR "/tests/golden/" + file);
  if (!in) throw FileError("[read_golden] tests/golden/" + file + " is not there");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream words(line);
    std::string name, digest, dtype, extents;
    words >> name >> digest >> dtype >> extents;
    eval::Dims dims;
    std::istringstream parts(extents == "-" ? "" : extents);
    for (std::string d; std::getline(parts, d, 'x');) dims.push_back(std::strtoll(d.c_str(), nullptr, 10));
    eval::Array value(parse_dtype(dtype), dims);
    for (Scalar& v : value.data) {
      std::string word;
      if (!(words >> word))
        throw FileError("[read_golden] tests/golden/" + file + ": " + name + " lacks values");
      v = parse(value.dtype, word);
    }
    out.emplace(name, Golden{std::strtoull(digest.c_str(), nullptr, 16), std::move(value)});
  }
  return out;
}

}  // namespace pg::ops
