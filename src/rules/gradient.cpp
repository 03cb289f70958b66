#include "rules/gradient.h"

#include <limits>

#include <absl/container/inlined_vector.h>

namespace pg::rules {
namespace {

using namespace pg::pat;

using Refs = absl::InlinedVector<Ref, 8>;

// In this list r is the node's value and g its gradient; a share is the source it goes to and what goes
// there.
constexpr Capture r = pat::z, g = pat::w;

struct Share {
  Pat to, gradient;
};
consteval Share share(Pat to, Pat gradient) { return {to, gradient}; }

consteval Rule grad(Pat forward, Share a, std::source_location at = std::source_location::current()) {
  return rule(node(Op::Tuple, forward, r, g), node(Op::Tuple, a.to, a.gradient), Domain::Any, {}, at);
}
consteval Rule grad(Pat forward, Share a, Share b,
                    std::source_location at = std::source_location::current()) {
  return rule(node(Op::Tuple, forward, r, g), node(Op::Tuple, a.to, a.gradient, b.to, b.gradient),
              Domain::Any, {}, at);
}
consteval Rule grad(Op op, Rule::Function function,
                    std::source_location at = std::source_location::current()) {
  return rule(node(Op::Tuple, any(op), r, g), function, Domain::Any, {}, at);
}
consteval Pat exp(Pat a) { return node(Op::Exp, a); }

constexpr double kLn2 = 0.6931471805599453, kTwoOverSqrtPi = 1.1283791670955126;

Ref shares(std::initializer_list<Ref> list) {
  return make(Op::Tuple, DType::Void, 1, std::span<const Ref>(list.begin(), list.size()));
}
Ref zero_like(Ref x) { return const_like(x, 0); }

Refs sizes_of(Ref shape) {
  Refs out;
  for (int i = 0; i < rank(shape); ++i) out.push_back(dim(shape, i));
  return out;
}
Ref shape_of_sizes(const Refs& sizes) { return shape_node(std::span<const Ref>(sizes.data(), sizes.size())); }

// A sum in the dtype sums are kept in.
Ref wide_sum(Ref x, std::uint64_t axes) {
  return cast(reduce(cast(x, accumulator(x.dtype())), Op::Add, axes), x.dtype());
}

// --- ops that need more than a pattern
// ---------------------------------------------------------------------------------

Ref cast_back(const Match& m) {
  Ref n = m[r], x = n.src(0);
  return is_float(x.dtype()) ? shares({x, cast(m[g], x.dtype())}) : nullptr;
}

// x^y at x = 0 and at y = 0, where the formulas divide and take logarithms of nothing.
Ref power(const Match& m) {
  Ref n = m[r], a = n.src(0), e = n.src(1), zero = zero_like(a);
  Ref da = where(eq(e, zero), zero, e * alu(Op::Pow, {a, e - 1}));
  Ref at_zero = where(e < zero, const_like(a, -std::numeric_limits<double>::infinity()), zero);
  Ref de = where(eq(a, zero), at_zero, n * alu(Op::Log, {a}));
  return shares({a, m[g] * da, e, m[g] * de});
}

// Of two values the one that is taken; equal ones share.
Ref extreme(const Match& m) {
  Ref n = m[r], a = n.src(0), b = n.src(1), none = zero_like(n);
  Ref first = n.is(Op::Max) ? b < a : a < b, second = n.is(Op::Max) ? a < b : b < a;
  Ref tie = where(eq(a, b), m[g] * const_like(n, 0.5), none);
  return shares({a, where(first, m[g], tie), b, where(second, m[g], tie)});
}

// For each element the product of all others along axes.
Ref product_of_others(Ref x, std::uint64_t axes) {
  constexpr std::int64_t kShort = 256;
  Ref shape = shape_of(x), count = idx(1);
  absl::InlinedVector<std::int64_t, 8> order, back(static_cast<std::size_t>(rank(shape)));
  Refs kept;
  for (int pass = 0; pass < 2; ++pass)
    for (int i = 0; i < rank(shape); ++i) {
      if ((axes >> i & 1) != static_cast<unsigned>(pass)) continue;
      back[static_cast<std::size_t>(i)] = static_cast<std::int64_t>(order.size());
      order.push_back(i);
      if (pass)
        count = count * dim(shape, i);
      else
        kept.push_back(dim(shape, i));
    }
  if (count.hi() > kShort) {
    // By division; where an element is zero only the first derivative of this is right.
    Ref none = zero_like(x), one = const_like(x, 1), zero = eq(x, none), others = where(zero, one, x);
    Ref product = reduce(others, Op::Mul, axes), zeros = wide_sum(cast(zero, x.dtype()), axes);
    return where(eq(zeros, none), product / others, where(zero & eq(zeros, one), product, none));
  }
  // A square with ones on its diagonal, multiplied up along its rows.
  Refs row = kept, result = kept;
  row.insert(row.end(), {idx(1), count});
  result.push_back(count);
  Ref at = make(Op::Arange, DType::I32, {shape_node(std::span<const Ref>(&count, 1))});
  Ref own = eq(reshape(at, shape_of_sizes({count, idx(1)})), at);
  Ref square = where(own, const_like(x, 1), reshape(permute(x, order), shape_of_sizes(row)));
  Ref products = reshape(reduce(square, Op::Mul, std::uint64_t{1} << (rank(shape_of(square)) - 1)),
                         shape_of_sizes(result));
  Refs permuted;
  for (std::int64_t axis : order) permuted.push_back(dim(shape, static_cast<int>(axis)));
  return permute(reshape(products, shape_of_sizes(permuted)), back);
}

Ref reduction(const Match& m) {
  Ref n = m[r], x = n.src(0);
  std::uint64_t axes = n.reduce_axes();
  switch (n.reduce_op()) {
    case Op::Add:
      return shares({x, expand(m[g], shape_of(x))});
    case Op::Max:
    case Op::Min: {
      // Equal extremes share evenly.
      Ref hit = eq(x, n), count = wide_sum(cast(hit, x.dtype()), axes);
      return shares({x, where(hit, m[g] / count, zero_like(x))});
    }
    case Op::Mul:
      return shares({x, m[g] * product_of_others(x, axes)});
    default:
      return nullptr;
  }
}

Ref movement(const Match& m) {
  Ref n = m[r];
  return shares({n.src(0), transpose_movement(n, m[g])});
}

Ref cat_pieces(const Match& m) {
  Ref n = m[r];
  auto axis = static_cast<int>(n.i());
  Refs out, offset(static_cast<std::size_t>(rank(shape_of(n))), idx(0));
  for (Node* s : n.srcs()) {
    out.push_back(s);
    out.push_back(shrink(m[g], shape_of(s), shape_of_sizes(offset)));
    Ref& at = offset[static_cast<std::size_t>(axis)];
    at = at + dim(shape_of(s), axis);
  }
  return make(Op::Tuple, DType::Void, 1, out);
}

// Every row of x gets the sum of what was read from it: a product with the one-hot matrix of the rows, which
// never becomes memory.
Ref scattered(const Match& m) {
  Ref n = m[r], x = n.src(0), rows = n.src(1), shape = shape_of(x);
  int read = rank(shape_of(rows)), rest = rank(shape) - 1;
  Refs flat{idx(1), idx(1)};
  for (int i = 0; i < read; ++i) flat[0] = flat[0] * dim(shape_of(rows), i);
  Refs column = flat;
  for (int i = 0; i < rest; ++i) {
    flat.push_back(dim(shape, i + 1));
    column.push_back(idx(1));
  }
  Refs row(column.size(), idx(1));
  row[1] = dim(shape, 0);
  Ref count = dim(shape, 0);
  Ref names = make(Op::Arange, rows.dtype(), {shape_node(std::span<const Ref>(&count, 1))});
  Ref hit = eq(reshape(rows, shape_of_sizes(column)), reshape(names, shape_of_sizes(row)));
  Ref sum = wide_sum(where(hit, reshape(m[g], shape_of_sizes(flat)), zero_like(x)), 1);
  return shares({x, reshape(sum, shape)});
}

// The view of a write, on other contents.
Ref view_on(Ref view, Ref old, Ref base) {
  Refs steps;
  for (Ref v = view; !same(v, old); v = v.src(0)) {
    if (v.is(Op::Bitcast)) throw DTypeError("[backward] no gradient through a write into a bitcast");
    steps.push_back(v);
  }
  for (std::size_t i = steps.size(); i-- > 0;) {
    Refs srcs(steps[i]->src, steps[i]->src + steps[i]->nsrc);
    srcs[0] = base;
    base = with_srcs(steps[i], srcs);
  }
  return base;
}

// The old contents get nothing where they were overwritten; what was written gets its region.
Ref written(const Match& m) {
  Ref n = m[r], old = n.src(0), view = n.src(1).src(0), value = n.src(1).src(1);
  if (same(view, old)) return shares({value, m[g]});
  // A movement would be taken for a part of the view.
  Ref base = m[g].has(kMovement) || m[g].is_const() ? make(Op::Contiguous, m[g].dtype(), {m[g]}) : m[g];
  Ref region = view_on(view, old, base);
  Ref rest = after(base, store(region, expand(zero_like(m[g]), shape_of(region))));
  return shares({old, rest, value, region});
}

Ref contiguous_backward(const Match& m) {
  return shares({m[r].src(0), make(Op::Contiguous, m[g].dtype(), {m[g]})});
}

// clang-format off
constexpr Rule kGradient[] = {
  // 1 / (1 + exp(-x)): by its parts, the logistic function gives 0 * infinity far out.
  grad(div(1, exp(neg(x)) + 1), share(x, g * (r * (1 - r)))),

  grad(x + y,              share(x, g),                   share(y, g)),
  grad(x - y,              share(x, g),                   share(y, neg(g))),
  grad(x * y,              share(x, g * y),               share(y, g * x)),
  grad(div(x, y),          share(x, div(g, y)),           share(y, neg(div(g * r, y)))),
  grad(neg(x),             share(x, neg(g))),
  // Beside a constant a tie gives nothing: relu and clamp are flat there. Two values that tie share.
  // By the result: what went in need not be kept.
  grad(max(x, c0),         share(x, pat::where(r > c0, g, 0))),
  grad(min(x, c0),         share(x, pat::where(r < c0, g, 0))),
  grad(Op::Max, extreme),
  grad(Op::Min, extreme),
  grad(pat::where(p, x, y), share(x, pat::where(p, g, 0)), share(y, pat::where(p, 0, g))),

  grad(node(Op::Sqrt, x),  share(x, div(g, r * 2))),
  grad(exp(x),             share(x, g * r)),
  grad(node(Op::Exp2, x),  share(x, g * r * kLn2)),
  grad(node(Op::Log, x),   share(x, div(g, x))),
  grad(node(Op::Log2, x),  share(x, div(g, x * kLn2))),
  grad(node(Op::Sin, x),   share(x, g * node(Op::Cos, x))),
  grad(node(Op::Cos, x),   share(x, neg(g * node(Op::Sin, x)))),
  grad(node(Op::Tanh, x),  share(x, g * (1 - r * r))),
  grad(node(Op::Erf, x),   share(x, g * exp(neg(x * x)) * kTwoOverSqrtPi)),
  grad(Op::Pow, power),

  grad(Op::Cast, cast_back),
  grad(Op::Reduce, reduction),
  grad(Op::Reshape, movement),
  grad(Op::Permute, movement),
  grad(Op::Expand, movement),
  grad(Op::Pad, movement),
  grad(Op::Shrink, movement),
  grad(Op::Flip, movement),
  grad(Op::Cat, cat_pieces),
  grad(Op::Index, scattered),
  grad(Op::After, written),
  grad(node(Op::Contiguous, x), share(x, g)),
  grad(node(Op::Copy, x),  share(x, g)),  // the walk moves it back
  grad(Op::ContiguousBackward, contiguous_backward),
};
// clang-format on

}  // namespace

const RuleSet& gradient() {
  static const auto* set = new RuleSet(kGradient);
  return *set;
}

Ref sum_through(Ref x, std::uint64_t axes) {
  Refs steps;
  Ref n = x;
  while (n.has(kMovement) && !n.is(Op::Expand)) {
    steps.push_back(n);
    n = n.src(0);
  }
  if (!n.is(Op::Reduce) || n.reduce_op() != Op::Add) return wide_sum(x, axes);
  // The axes of the sum below go in front, where no movement touches them.
  Ref inner = n.src(0), shape = shape_of(inner);
  Refs lead;
  absl::InlinedVector<std::int64_t, 8> order;
  for (int pass = 0; pass < 2; ++pass)
    for (int i = 0; i < rank(shape); ++i)
      if ((n.reduce_axes() >> i & 1) == (pass == 0)) {
        order.push_back(i);
        if (pass == 0) lead.push_back(dim(shape, i));
      }
  auto under = [&](Ref s) {
    Refs all = lead;
    for (Ref d : sizes_of(s)) all.push_back(d);
    return shape_of_sizes(all);
  };
  auto at_zero = [&](Ref offset) {
    Refs all(lead.size(), idx(0));
    for (Ref d : sizes_of(offset)) all.push_back(d);
    return shape_of_sizes(all);
  };
  Ref v = reshape(permute(inner, order), under(shape_of(n)));
  for (std::size_t i = steps.size(); i-- > 0;) {
    Ref s = steps[i];
    switch (s.op()) {
      case Op::Reshape:
        v = reshape(v, under(s.src(1)));
        break;
      case Op::Flip:
        v = flip(v, static_cast<std::uint64_t>(s.i()) << lead.size());
        break;
      case Op::Pad:
        v = pad(v, under(s.src(1)), at_zero(s.src(2)));
        break;
      case Op::Shrink:
        v = shrink(v, under(s.src(1)), at_zero(s.src(2)));
        break;
      default: {
        absl::InlinedVector<std::int64_t, 8> axes_of_step;
        for (std::size_t k = 0; k < lead.size(); ++k) axes_of_step.push_back(static_cast<std::int64_t>(k));
        for (std::int64_t a : s.ints()) axes_of_step.push_back(a + static_cast<std::int64_t>(lead.size()));
        v = permute(v, axes_of_step);
      }
    }
  }
  v = reduce(v, Op::Add, axes << lead.size() | ((std::uint64_t{1} << lead.size()) - 1));
  Refs result = sizes_of(shape_of(v));
  result.erase(result.begin(), result.begin() + static_cast<std::ptrdiff_t>(lead.size()));
  return reshape(v, shape_of_sizes(result));
}

Ref transpose_movement(Ref n, Ref x) {
  Ref from = shape_of(n.src(0));
  switch (n.op()) {
    case Op::Reshape:
      return reshape(x, from);
    case Op::Flip:
      return flip(x, static_cast<std::uint64_t>(n.i()));
    case Op::Pad:
      return shrink(x, from, n.src(2));
    case Op::Shrink:
      return pad(x, from, n.src(2));
    case Op::Permute: {
      absl::InlinedVector<std::int64_t, 8> back(n.ints().size());
      for (std::size_t i = 0; i < back.size(); ++i)
        back[static_cast<std::size_t>(n.ints()[i])] = static_cast<std::int64_t>(i);
      return permute(x, back);
    }
    case Op::Expand: {
      Ref to = n.src(1);
      int extra = rank(to) - rank(from);
      std::uint64_t axes = 0;
      for (int i = 0; i < rank(to); ++i)
        if (i < extra || !same(dim(to, i), dim(from, i - extra))) axes |= std::uint64_t{1} << i;
      return reshape(sum_through(x, axes), from);
    }
    default:
      return nullptr;
  }
}

bool may_spoil_zero(Ref n) {
  switch (n.op()) {
    case Op::Add:
    case Op::Sub:
    case Op::Neg:
    case Op::Cast:
    case Op::Where:
    case Op::Max:
    case Op::Min:
      return false;
    default:
      return n.has(kElementwise);
  }
}

}  // namespace pg::rules
