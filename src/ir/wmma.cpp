#include "ir/wmma.h"

#include <charconv>
#include <map>

#include "ir/parse.h"

namespace pg {
namespace {

// Never freed: there are a handful.
WmmaShape* shape_of_core(const TensorCore& core) {
  static auto* shapes = new std::map<std::string, WmmaShape*>;  // under the graph's lock
  auto* fresh = new WmmaShape;
  fresh->core = core;
  auto [at, added] = shapes->try_emplace(fresh->text(), fresh);
  if (!added) {
    delete fresh;
    return at->second;
  }
  fresh->refs = 1;
  fresh->hash = std::hash<std::string>{}(at->first);
  return fresh;
}

Payload* parse_shape(std::string_view body) {
  TensorCore core{};
  const char* end = body.data() + body.size();
  auto read = [&](int& n, char after) {
    auto [p, error] = std::from_chars(body.data(), end, n);
    if (error != std::errc() || p == end || *p != after || n <= 0)
      throw ValueError("[wmma] not the shape of a matrix unit");
    body.remove_prefix(static_cast<std::size_t>(p + 1 - body.data()));
  };
  read(core.m, 'x'), read(core.n, 'x'), read(core.k, ' ');
  std::size_t space = body.find(' ');
  if (space == std::string_view::npos) throw ValueError("[wmma] a matrix unit has two dtypes");
  core.in = parse_dtype(body.substr(0, space));
  core.out = parse_dtype(body.substr(space + 1));
  return shape_of_core(core);
}

[[maybe_unused]] const bool kRegistered = (register_object("wmma", parse_shape), true);

}  // namespace

std::string WmmaShape::text() const {
  auto number = [](int n) { return std::to_string(n); };
  return "wmma{" + number(core.m) + "x" + number(core.n) + "x" + number(core.k) + " " +
         std::string(name(core.in)) + " " + std::string(name(core.out)) + "}";
}

Ref wmma(Ref a, Ref b, Ref c, const TensorCore& core) {
  return make(Op::Wmma, core.out, {a, b, c}, Arg{.p = shape_of_core(core)}, c.lanes());
}

}  // namespace pg
