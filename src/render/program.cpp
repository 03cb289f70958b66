#include "render/program.h"

#include <algorithm>

#include "ir/build.h"

namespace pg {
namespace {

std::int64_t extent_of(Ref special) {
  if (!special.src(0).is_const())
    throw InternalError("[render] the extent of " + special.str() + " is not a constant");
  return special.src(0).i();
}

std::int64_t bytes_of(Ref local) {
  Ref shape = local.src(0);
  if (!shape.is(Op::Shape) || !is_concrete(shape))
    throw InternalError("[render] the size of a Local is not a constant");
  return numel(shape) * static_cast<std::int64_t>(itemsize(local.dtype()));
}

}  // namespace

Ref strip_after(Ref x) {
  while (x.is(Op::After)) x = x.src(0);
  return x;
}

Ref buffer_of(Ref x) {
  while (x.is(Op::After) || x.is(Op::Index)) x = x.src(0);
  return x;
}

namespace {

bool is_multiple(Ref n, std::int64_t of) {
  n = strip_after(n);
  switch (n.op()) {
    case Op::Const:
      return n.i() % of == 0;
    case Op::Cast:
      return is_int(n.src(0).dtype()) && is_multiple(n.src(0), of);
    case Op::Add:
    case Op::Sub:
      return is_multiple(n.src(0), of) && is_multiple(n.src(1), of);
    case Op::Mul:
      return is_multiple(n.src(0), of) || is_multiple(n.src(1), of);
    case Op::Shl: {
      Ref by = strip_after(n.src(1));
      return by.is_const() && by.i() < 32 &&
             (std::int64_t{1} << by.i() >= of || is_multiple(n.src(0), of >> by.i()));
    }
    default:
      return false;
  }
}

}  // namespace

int stream_alignment(Ref store) {
  constexpr int kLine = 64, kLeast = 16;
  Ref index = strip_after(store.src(0)), value = strip_after(store.src(1));
  if (store.i() != kStreams || !index.is(Op::Index) || index.nsrc() > 2 || index.src(1).lanes() > 1) return 0;
  int bytes = value.lanes() * static_cast<int>(itemsize(value.dtype()));
  if (bytes < kLeast || (bytes & (bytes - 1)) || !is_multiple(index.src(1), value.lanes())) return 0;
  return std::min(bytes, kLine);
}

std::vector<ScratchPart> scratch_layout(Ref linear) {
  std::vector<ScratchPart> parts;
  for (Ref n : toposort(linear))
    if (n.is(Op::Local)) parts.push_back({n, 0, bytes_of(n)});
  std::sort(parts.begin(), parts.end(), [](auto& a, auto& b) { return a.local.i() < b.local.i(); });
  std::int64_t at = 0;
  for (ScratchPart& part : parts) {
    part.offset = at;
    at += (part.bytes + 63) / 64 * 64;
  }
  return parts;
}

ProgramInfo program_info(Ref linear, std::string_view name, const Target& target) {
  ProgramInfo info;
  info.name = name;
  for (Ref n : toposort(linear)) {
    if (n.is(Op::Param)) info.buffers = std::max(info.buffers, static_cast<int>(n.i()) + 1);
    if (n.is(Op::ScalarParam)) info.scalars = std::max(info.scalars, static_cast<int>(n.i()) + 1);
    if (!n.is(Op::Special)) continue;
    std::string_view what = n.str();
    std::int64_t extent = extent_of(n);
    if (what == "thread") {
      info.threads = extent;
    } else if (what.size() == 5 && what[4] >= '0' && what[4] <= '2' &&
               (what.starts_with("gidx") || what.starts_with("lidx"))) {
      (what[0] == 'g' ? info.global : info.local)[static_cast<std::size_t>(what[4] - '0')] = extent;
    } else {
      throw InternalError("[render] there is no Special named " + n.str());
    }
  }
  std::vector<ScratchPart> parts = scratch_layout(linear);
  std::int64_t bytes = parts.empty() ? 0 : parts.back().offset + (parts.back().bytes + 63) / 64 * 64;
  (target.has_groups ? info.local_bytes : info.scratch_bytes) = bytes;
  return info;
}

}  // namespace pg
