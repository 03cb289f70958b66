#include "rewrite/fuzz.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include <absl/container/inlined_vector.h>

namespace pg {

namespace {

// Values of all nodes under root that have one.
Values evaluate_all(Ref root, const Values& leaves) {
  Values known = leaves;
  for (Ref n : toposort(root)) {
    if (known.contains(n.node())) continue;
    if (n.is_const()) {
      known[n.node()] = n->arg;
      continue;
    }
    bool complete = is_exact(n.op()) || n.is(Op::Splat);
    std::array<Scalar, 3> s;
    for (int k = 0; complete && k < n.nsrc(); ++k) {
      auto it = known.find(n.src(k).node());
      complete = it != known.end();
      if (complete) s[static_cast<std::size_t>(k)] = it->second;
    }
    if (!complete) continue;
    known[n.node()] = n.is(Op::Splat)
                          ? s[0]
                          : eval_scalar(n.op(), n.dtype(), n.src(n.is(Op::Where) ? 1 : 0).dtype(), s.data());
  }
  return known;
}

}  // namespace

std::optional<Scalar> evaluate(Ref root, const Values& leaves) {
  Values known = evaluate_all(root, leaves);
  auto it = known.find(root.node());
  return it == known.end() ? std::nullopt : std::optional(it->second);
}

bool same_value(DType t, Scalar a, Scalar b) {
  if (!is_float(t)) return a.i == b.i;
  return (std::isnan(a.f) && std::isnan(b.f)) ||
         std::bit_cast<std::int64_t>(a.f) == std::bit_cast<std::int64_t>(b.f);
}

std::string expression_text(Ref n) {
  auto s = [&](int k) { return expression_text(n.src(k)); };
  auto binary = [&](const char* op) { return "(" + s(0) + op + s(1) + ")"; };
  switch (n.op()) {
    case Op::Const:
      if (n.dtype() == DType::Bool) return n.i() ? "true" : "false";
      return is_float(n.dtype()) ? std::to_string(n.f()) : std::to_string(n.i());
    case Op::Range:
      return "r" + std::to_string(n.range_id());
    case Op::Var:
      return n.str();
    case Op::Param:
      return "p" + std::to_string(n.i());
    case Op::Add:
      return binary("+");
    case Op::Sub:
      return binary("-");
    case Op::Mul:
      return binary("*");
    case Op::Div:
    case Op::FloorDiv:
      return binary("/");
    case Op::FloorMod:
      return binary("%");
    case Op::And:
      return binary("&");
    case Op::Or:
      return binary("|");
    case Op::Xor:
      return binary("^");
    case Op::Shl:
      return binary("<<");
    case Op::Shr:
      return binary(">>");
    case Op::CmpLt:
      return binary("<");
    case Op::CmpEq:
      return binary("==");
    case Op::CmpNe:
      return n.src(1).is_const(1) && n.src(0).dtype() == DType::Bool ? "!" + s(0) : binary("!=");
    case Op::Cast:
      return std::string(name(n.dtype())) + "(" + s(0) + ")";
    case Op::Bitcast:
      return "bits_" + std::string(name(n.dtype())) + "(" + s(0) + ")";
    default:
      break;
  }
  std::string out = std::string(info(n.op()).name) + "(";
  for (int k = 0; k < n.nsrc(); ++k) out += (k ? ", " : "") + s(k);
  return out + ")";
}

namespace {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15u + 0x2545F4914F6CDD1Du) {}
  std::uint64_t next() {  // xorshift64* (Vigna, 2016)
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 0x2545F4914F6CDD1Du;
  }
  /// In [lo, hi].
  std::int64_t between(std::int64_t lo, std::int64_t hi) {
    std::uint64_t n = static_cast<std::uint64_t>(hi) - static_cast<std::uint64_t>(lo) + 1;
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(lo) + (n ? next() % n : next()));
  }
  bool chance(int percent) { return between(1, 100) <= percent; }
  template <class C>
  auto pick(const C& from) {
    return from[static_cast<std::size_t>(between(0, static_cast<std::int64_t>(std::size(from)) - 1))];
  }

 private:
  std::uint64_t state_;
};

constexpr DType kNumbers[] = {DType::Bool, DType::WeakInt, i8,  u8, i16, u16, i32, u32, i64, u64,
                              f16,         bf16,           f32, f64};

std::vector<DType> dtypes_of(Domain domain) {
  std::vector<DType> out;
  for (DType t : kNumbers) {
    bool in = domain == Domain::Any || (domain == Domain::Ints && is_int(t)) ||
              (domain == Domain::Floats && is_float(t)) || (domain == Domain::Bools && t == DType::Bool) ||
              ((domain == Domain::IntsAndBools || domain == Domain::Decided) && !is_float(t)) ||
              (domain == Domain::Indices && t == DType::WeakInt);
    if (in) out.push_back(t);
  }
  return out;
}

Scalar interesting(DType t, Random& random) {
  if (is_float(t)) {
    constexpr double kInf = std::numeric_limits<double>::infinity();
    static constexpr double kValues[] = {0.0,   -0.0,    1.0,    -1.0,      2.0,       -2.0, 0.5,    3.0,
                                         -7.0,  1e-3,    kInf,   -kInf,     100.,      0.1,  6.1e-5, 6.0e-8,
                                         1e-40, 1.5e-45, 65504., 3.4028e38, 1.175e-38, 1e300};
    if (random.chance(8)) return float_scalar(std::nan(""));
    double v =
        random.chance(60) ? random.pick(kValues) : static_cast<double>(random.between(-4096, 4096)) / 64.0;
    return float_scalar(round_to(t, v));
  }
  if (t == DType::Bool) return int_scalar(random.between(0, 1));
  static constexpr std::int64_t kValues[] = {0,  1,  2,  3,  4,  5,   6,   7,   8,   12, 16,
                                             24, 31, 32, 63, 64, 100, 127, 128, 255, 256};
  if (t == DType::WeakInt)
    return int_scalar(random.chance(70) ? random.pick(kValues) * (random.chance(30) ? -1 : 1)
                                        : random.between(-50, 50));
  if (random.chance(10)) return int_scalar(int_min(t));
  if (random.chance(10)) return int_scalar(t == u64 ? -1 : int_max(t));
  if (random.chance(10))  // a power of two, or next to one
    return int_scalar(wrap(t, (std::int64_t{1} << random.between(0, 62)) + random.between(-1, 1)));
  return int_scalar(wrap(t, random.chance(70) ? random.pick(kValues) * (random.chance(30) ? -1 : 1)
                                              : static_cast<std::int64_t>(random.next())));
}

// Leaves of any dtype: bounded variables for integers, parameters for the rest.
class Leaves {
 public:
  explicit Leaves(Random& random) : random_(random) {}

  Ref fresh(DType t) {
    int number = static_cast<int>(all_.size());
    Ref leaf;
    if (is_float(t) || t == u64 || t == DType::Bool) {
      leaf = param(number, t, shape_node(Dims{}));
    } else {
      std::int64_t lo = interesting(t, random_).i, hi = interesting(t, random_).i;
      if (random_.chance(50)) {
        std::int64_t width = random_.between(0, 12);
        hi = lo > int_max(t) - width ? int_max(t) : lo + width;
      }
      if (t != DType::WeakInt && random_.chance(40)) lo = int_min(t), hi = int_max(t);
      leaf = var("v" + std::to_string(number), std::min(lo, hi), std::max(lo, hi), t);
    }
    all_.push_back(leaf);
    return leaf;
  }
  Ref range(std::int64_t extent) { return range(idx(extent)); }
  Ref range(Ref extent) {
    Ref leaf = pg::range(static_cast<std::int64_t>(all_.size()), RangeKind::Loop, extent);
    all_.push_back(leaf);
    return leaf;
  }
  Ref size(std::int64_t lo, std::int64_t hi) {
    all_.push_back(var("n" + std::to_string(all_.size()), lo, hi));
    return all_.back();
  }
  Ref any(DType t) {
    std::vector<Ref> fit;
    for (Ref leaf : all_)
      if (leaf.dtype() == t) fit.push_back(leaf);
    return fit.empty() || random_.chance(15) ? fresh(t) : random_.pick(fit);
  }

  // Values: all at one end of their bounds, or at random. Sources of ranges come first in all_.
  Values draw() {
    Values v;
    int mode = static_cast<int>(random_.between(0, 9));
    for (Ref leaf : all_) {
      std::int64_t lo = leaf.lo(), hi = leaf.hi();
      if (leaf.is(Op::Range)) {
        auto extent = v.find(leaf.src(0).node());
        if (extent != v.end()) hi = std::max<std::int64_t>(0, extent->second.i - 1);
      }
      bool bounded = !is_float(leaf.dtype()) && leaf.dtype() != u64;
      Scalar s = !bounded    ? interesting(leaf.dtype(), random_)
                 : mode == 0 ? int_scalar(lo)
                 : mode == 1 ? int_scalar(hi)
                             : int_scalar(random_.between(lo, hi));
      if (bounded && mode > 4 && leaf.dtype() != DType::Bool) {  // also the special values within bounds
        std::int64_t special = interesting(leaf.dtype(), random_).i;
        if (special >= lo && special <= hi && random_.chance(50)) s = int_scalar(special);
      }
      v[leaf.node()] = s;
    }
    return v;
  }

  std::string text(const Values& v) const {
    std::string out;
    for (Ref leaf : all_) {
      Scalar s = v.at(leaf.node());
      out += " " + std::string(name(leaf.dtype())) + " " + expression_text(leaf) + "=" +
             (is_float(leaf.dtype()) ? std::to_string(s.f) : std::to_string(s.i));
      if (leaf.is(Op::Var))
        out += " in [" + std::to_string(leaf.lo()) + "," + std::to_string(leaf.hi()) + "]";
      if (leaf.is(Op::Range)) out += " of " + expression_text(leaf.src(0));
    }
    return out;
  }

 private:
  Random& random_;
  std::vector<Ref> all_;
};

// --- expressions
// ---------------------------------------------------------------------------------------------------

class Expressions {
 public:
  Expressions(Random& random, Leaves& leaves) : random_(random), leaves_(leaves) {}

  Ref index(int depth) {
    if (depth == 0 || random_.chance(8)) return index_leaf();
    auto sub = [&] { return index(depth - 1); };
    switch (random_.between(0, 15)) {
      case 0:
      case 1:
      case 2:
        return sub() + sub();
      case 3:
        return sub() - sub();
      case 4:
      case 5:
      case 6:
        return sub() * idx(random_.pick(kFactors));
      case 7:
      case 8:
      case 9:
        return sub() / divisor();
      case 10:
      case 11:
      case 12:
        return sub() % divisor();
      case 13:
        return random_.chance(50) ? max(sub(), sub()) : min(sub(), sub());
      case 14:
        return where(condition(depth - 1), sub(), sub());
      default:
        return random_.chance(50) ? -sub() : sub() + idx(random_.between(-20, 20));
    }
  }

  Ref condition(int depth) {
    if (depth == 0) return index_leaf() < idx(random_.between(-3, 20));
    auto sub = [&] { return condition(depth - 1); };
    switch (random_.between(0, 9)) {
      case 0:
      case 1:
        return index(depth - 1) < index(depth - 1);
      case 2:
        return index(depth - 1) < idx(random_.between(-30, 40));
      case 3:
        return idx(random_.between(-30, 40)) < index(depth - 1);
      case 4:
        return random_.chance(50) ? eq(index(depth - 1), index(depth - 1))
                                  : eq(index(depth - 1), idx(random_.between(-8, 20)));
      case 5:
        return ne(index(depth - 1), idx(random_.between(-8, 20)));
      case 6:
      case 7:
        return sub() & sub();
      case 8:
        return sub() | sub();
      default:
        return random_.chance(70) ? logical_not(sub()) : where(sub(), sub(), sub());
    }
  }

  // Dimensions are split, joined, exchanged, flipped, strided and padded, some of them symbolic; the result
  // is an offset, gated where padded.
  Ref reshaped() {
    static constexpr std::int64_t kSizes[] = {1, 2, 3, 4, 5, 6, 8};
    std::vector<Ref> shape, at;
    for (int k = 0, n = static_cast<int>(random_.between(1, 4)); k < n; ++k) {
      shape.push_back(random_.chance(85) ? idx(random_.pick(kSizes)) : size());
      at.push_back(leaves_.range(shape.back()));
    }
    auto flat = [&] {
      Ref out = idx(0);
      for (std::size_t i = 0; i < shape.size(); ++i) out = out * shape[i] + at[i];
      return out;
    };
    auto axis_of = [&] {
      return static_cast<std::size_t>(random_.between(0, static_cast<std::int64_t>(shape.size()) - 1));
    };
    Ref gate = bool_const(true);
    for (int step = 0, n = static_cast<int>(random_.between(1, 5)); step < n; ++step) {
      std::size_t axis = axis_of();
      switch (random_.between(0, 4)) {
        case 0: {  // reshape: numbers are factored anew, symbols join what they happen to
          Ref from = flat();
          std::vector<Ref> to;
          std::int64_t left = 1;
          for (Ref d : shape)
            if (d.is_const()) left *= d.i();
          while (left > 1) {
            std::vector<std::int64_t> divisors;
            for (std::int64_t d = 2; d <= left; ++d)
              if (left % d == 0) divisors.push_back(d);
            to.push_back(idx(random_.pick(divisors)));
            left /= to.back().i();
          }
          for (Ref d : shape) {
            if (d.is_const()) continue;
            auto where = static_cast<std::size_t>(random_.between(0, static_cast<std::int64_t>(to.size())));
            if (where < to.size() && random_.chance(40))
              to[where] = to[where] * d;
            else
              to.insert(to.begin() + static_cast<std::ptrdiff_t>(where), d);
          }
          if (to.empty()) to.push_back(idx(1));
          shape = to;
          at.assign(shape.size(), Ref());
          Ref stride = idx(1);
          for (std::size_t i = shape.size(); i-- > 0; stride = stride * shape[i])
            at[i] = from / stride % shape[i];
          break;
        }
        case 1: {  // permute
          std::size_t other = axis_of();
          std::swap(shape[axis], shape[other]);
          std::swap(at[axis], at[other]);
          break;
        }
        case 2:
          at[axis] = shape[axis] - idx(1) - at[axis];
          break;   // flip
        case 3: {  // the source was padded to this shape
          if (!shape[axis].is_const()) break;
          std::int64_t before = random_.between(0, 2),
                       inside = shape[axis].i() - before - random_.between(0, 2);
          if (inside < 1) break;
          gate = gate & logical_not(at[axis] < idx(before)) & (at[axis] < idx(before + inside));
          at[axis] = at[axis] - before;
          shape[axis] = idx(inside);
          break;
        }
        default: {  // the source was cut, strided, or repeated to this shape
          if (random_.chance(50)) {
            std::int64_t offset = random_.between(0, 3), stride = random_.between(1, 3);
            shape[axis] = shape[axis] * stride + offset;
            at[axis] = at[axis] * stride + offset;
          } else if (shape[axis].is_const() && shape[axis].i() > 1) {
            std::int64_t repeat = random_.between(1, shape[axis].i());
            at[axis] = at[axis] % repeat;
            shape[axis] = idx(repeat);
          }
        }
      }
    }
    return where(gate, flat(), idx(-1));
  }

  Ref data(DType t, int depth) {
    if (depth == 0 || random_.chance(8))
      return random_.chance(30) ? scalar_const(t, interesting(t, random_)) : leaves_.any(t);
    auto sub = [&] { return data(t, depth - 1); };
    if (random_.chance(10)) return where(data(DType::Bool, depth - 1), sub(), sub());
    if (random_.chance(10)) {
      DType from = random_.pick(kNumbers);
      if (from != DType::WeakInt) return cast(data(from, depth - 1), t);
    }
    if (t == DType::Bool) {
      static constexpr Op kOps[] = {Op::And,   Op::Or,  Op::Xor, Op::CmpEq, Op::CmpNe,
                                    Op::CmpLt, Op::Add, Op::Mul, Op::Max,   Op::Min};
      Op op = random_.pick(kOps);
      if (!(info(op).flags & kComparison) || random_.chance(20)) return alu(op, {sub(), sub()});
      DType from = random_.pick(kNumbers);
      if (from == DType::WeakInt) from = i32;
      return alu(op, {data(from, depth - 1), data(from, depth - 1)});
    }
    if (is_float(t)) {
      static constexpr Op kOps[] = {Op::Add, Op::Add, Op::Mul, Op::Mul, Op::Sub,
                                    Op::Div, Op::Max, Op::Min, Op::Neg, Op::Trunc};
      Op op = random_.pick(kOps);
      return info(op).nsrc == 1 ? alu(op, {sub()}) : alu(op, {sub(), sub()});
    }
    static constexpr Op kOps[] = {Op::Add,      Op::Add,      Op::Add,  Op::Mul,  Op::Mul, Op::Sub,
                                  Op::FloorDiv, Op::FloorMod, Op::CDiv, Op::CMod, Op::Max, Op::Min,
                                  Op::And,      Op::Or,       Op::Xor,  Op::Shl,  Op::Shr, Op::Neg};
    Op op = random_.pick(kOps);
    return info(op).nsrc == 1 ? alu(op, {sub()}) : alu(op, {sub(), sub()});
  }

 private:
  static constexpr std::int64_t kFactors[] = {2, 3, 4, 5, 6, 8, 12, -1, -2, -3, -4, 1, 16, 7};

  Ref index_leaf() {
    if (random_.chance(20)) return idx(random_.between(-10, 30));
    if (random_.chance(25)) return leaves_.any(DType::WeakInt);
    if (random_.chance(10)) return leaves_.range(size());
    static constexpr std::int64_t kExtents[] = {1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24};
    return leaves_.range(random_.pick(kExtents));
  }
  Ref size() { return leaves_.size(random_.between(1, 3), random_.between(4, 12)); }
  Ref divisor() {
    if (random_.chance(90)) return idx(random_.pick(kFactors));
    Ref v = max(leaves_.any(DType::WeakInt), idx(1));
    if (random_.chance(30)) v = size();
    return random_.chance(50) ? v : v * idx(random_.between(2, 4));
  }

  Random& random_;
  Leaves& leaves_;
};

// --- single rules
// --------------------------------------------------------------------------------------------------

// Builds a random instance of a pattern.
class Instance {
 public:
  // Every fourth one is a vector with equal lanes, whose value is that of one lane.
  Instance(const Pat& pattern, Random& random, Leaves& leaves)
      : pattern_(pattern), random_(random), leaves_(leaves), lanes_(random.chance(25) ? 4 : 1) {}

  // Null if the dtypes do not work out; the caller tries again.
  Ref build(DType t) {
    at_ = 0;
    return step(t);
  }

 private:
  Ref step(DType t) {
    const PatNode& p = pattern_.nodes[at_++];
    switch (p.kind) {
      case PatNode::Literal:
        return splat(const_like(is_float(t) ? float_const(t, 0) : int_const(t, 0), p.value), lanes_);
      case PatNode::Any:
      case PatNode::Bool:
      case PatNode::Constant: {
        if (p.kind == PatNode::Bool && t != DType::Bool) return nullptr;
        Ref& slot = slots_[p.slot];
        if (slot && slot.dtype() != t) return nullptr;
        if (!slot)
          slot = splat(p.kind == PatNode::Constant ? scalar_const(t, interesting(t, random_)) : operand(t),
                       lanes_);
        return slot;
      }
      case PatNode::AnyArity: {
        if (p.op == Op::Splat) return lanes_ > 1 ? splat(operand(t), lanes_) : nullptr;
        if (!is_exact(p.op)) return nullptr;
        return build_node(p.op, info(p.op).nsrc, t, [&](DType kid) {
          return splat(random_.chance(40) ? scalar_const(kid, interesting(kid, random_)) : operand(kid),
                       lanes_);
        });
      }
      case PatNode::Node:
        if (!is_exact(p.op)) return nullptr;
        return build_node(p.op, p.nsrc, t, [&](DType kid) { return step(kid); });
      default:
        return nullptr;
    }
  }

  // Mostly a leaf; else a small expression, for the functions that look deeper.
  Ref operand(DType t) {
    if (random_.chance(60)) return leaves_.any(t);
    Expressions expressions(random_, leaves_);
    return t == DType::WeakInt ? expressions.index(2) : expressions.data(t, 2);
  }

  template <class F>
  Ref build_node(Op op, int nsrc, DType t, F kid) {
    if (op == Op::Threefry && t != u64) return nullptr;
    if ((op == Op::Div || op == Op::Sqrt) && !is_float(t)) return nullptr;
    bool integer_only = op == Op::FloorDiv || op == Op::FloorMod || op == Op::CDiv || op == Op::CMod ||
                        op == Op::And || op == Op::Or || op == Op::Xor || op == Op::Shl || op == Op::Shr;
    if (integer_only && is_float(t)) return nullptr;
    if ((op == Op::Shl || op == Op::Shr) && t == DType::Bool) return nullptr;
    DType from = t;
    if (info(op).flags & kComparison) {
      if (t != DType::Bool) return nullptr;
      from = operands_.value_or(random_.pick(kNumbers));
    } else if (op == Op::Cast || op == Op::Bitcast) {
      from = random_.pick(kNumbers);
      if (from == t ||
          (op == Op::Bitcast && (itemsize(from) != itemsize(t) || from == DType::Bool || t == DType::Bool)))
        return nullptr;
      if (op == Op::Bitcast && (is_weak(from) || is_weak(t))) return nullptr;
    }
    operands_.reset();
    absl::InlinedVector<Ref, 3> srcs;
    for (int k = 0; k < nsrc; ++k) {
      Ref s = kid(op == Op::Where && k == 0 ? DType::Bool : from);
      if (!s) return nullptr;
      srcs.push_back(s);
    }
    return make(op, t, lanes_, srcs);
  }

 public:
  /// For a root that compares: the dtype of its operands.
  std::optional<DType> operands_;

 private:
  const Pat& pattern_;
  Random& random_;
  Leaves& leaves_;
  int lanes_;
  Ref slots_[pat::kSlots];
  int at_ = 0;
};

std::string value_text(DType t, Scalar s) { return is_float(t) ? std::to_string(s.f) : std::to_string(s.i); }

std::string place(const Rule& rule) { return std::string(rule.file) + ":" + std::to_string(rule.line); }

void fuzz_rule(const Rule& rule, Random& random, const FuzzOptions& options, FuzzReport& report) {
  const PatNode& root = rule.left.nodes[0];
  if (!(info(root.op).flags & kElementwise) || !is_exact(root.op)) return;
  for (int i = 0; i < rule.left.n; ++i)
    if (rule.left.nodes[i].kind >= PatNode::Node && !is_exact(rule.left.nodes[i].op) &&
        rule.left.nodes[i].op != Op::Splat)
      return;
  RuleSet alone{std::span<const Rule>(&rule, 1)};
  std::vector<DType> dtypes = dtypes_of(rule.domain);
  bool compares = info(root.op).flags & kComparison;
  int fired = 0;
  for (int attempt = 0; attempt < options.rounds * 40 && fired < options.rounds; ++attempt) {
    GraphScope scope;
    Leaves leaves(random);
    Instance instance(rule.left, random, leaves);
    DType t = random.pick(dtypes);
    if (compares) instance.operands_ = t;
    Ref before = instance.build(compares ? DType::Bool : t);
    if (!before || !before.is(root.op)) continue;
    Ref after = alone.apply(before, options.ctx);
    if (!after) continue;
    ++fired;
    ++report.fired;
    auto fault = [&](const std::string& what) {
      report.faults.push_back(place(rule) + ": " + expression_text(before) + " became " +
                              expression_text(after) + what);
    };
    if (after.dtype() != before.dtype() || after.lanes() != before.lanes()) {
      fault(", of another dtype or width");
      return;
    }
    for (int point = 0; point < 12; ++point) {
      Values v = leaves.draw();
      std::optional<Scalar> a = evaluate(before, v), b = evaluate(after, v);
      if (!a) continue;
      ++report.points;
      if (b && same_value(before.dtype(), *a, *b)) continue;
      fault(": " + value_text(before.dtype(), *a) + " became " +
            (b ? value_text(before.dtype(), *b) : "nothing") + " at" + leaves.text(v));
      return;
    }
  }
  if (!fired) report.unfired.push_back(&rule);
}

Ref random_expression(FuzzKind kind, const FuzzOptions& options, Random& random, Leaves& leaves) {
  Expressions make_one(random, leaves);
  int depth = static_cast<int>(random.between(1, options.depth));
  switch (kind) {
    case FuzzKind::Indices:
      return random.chance(75) ? make_one.index(depth) : make_one.condition(depth);
    case FuzzKind::Reshapes:
      return make_one.reshaped();
    default: {
      DType t = random.pick(kNumbers);
      return make_one.data(t == DType::WeakInt ? i32 : t, depth);
    }
  }
}

bool within_bounds(Ref n, Scalar v) {
  return is_float(n.dtype()) || n.dtype() == u64 || (v.i >= n.lo() && v.i <= n.hi());
}

}  // namespace

FuzzReport fuzz_rules(const RuleSet& rules, const FuzzOptions& options) {
  FuzzReport report;
  Random random(options.seed);
  for (const Rule* rule : rules.rules()) fuzz_rule(*rule, random, options, report);
  return report;
}

std::vector<Ref> random_expressions(FuzzKind kind, const FuzzOptions& options) {
  std::vector<Ref> out;
  Random random(options.seed);
  for (int i = 0; i < options.rounds; ++i) {
    Leaves leaves(random);
    out.push_back(random_expression(kind, options, random, leaves));
  }
  return out;
}

FuzzReport fuzz_graphs(const RuleSet& rules, FuzzKind kind, const FuzzOptions& options) {
  FuzzReport report;
  Random random(options.seed);
  const RewriteOptions pass{.name = "fuzz", .ctx = options.ctx, .budget = 20'000};
  for (int i = 0; i < options.rounds && report.faults.size() < 10; ++i) {
    GraphScope scope;
    Leaves leaves(random);
    Ref before = random_expression(kind, options, random, leaves);
    Ref after, again;
    try {
      after = rewrite(before, rules, pass);
      again = rewrite(after, rules, pass);
    } catch (const InternalError& e) {
      report.faults.push_back(expression_text(after ? after : before) + ": " + e.what());
      continue;
    }
    auto fault = [&](const std::string& what) {
      report.faults.push_back(expression_text(before) + " became " + expression_text(after) + what);
    };
    ++report.fired;
    if (!same(again, after)) fault(" and then " + expression_text(again));
    for (int point = 0; point < 25; ++point) {
      Values v = leaves.draw();
      std::optional<Scalar> a = evaluate(before, v);
      if (!a) continue;
      ++report.points;
      Values values = evaluate_all(after, v);
      auto b = values.find(after.node());
      if (b == values.end() || !same_value(before.dtype(), *a, b->second)) {
        fault(": " + value_text(before.dtype(), *a) + " became " +
              (b == values.end() ? "nothing" : value_text(before.dtype(), b->second)) + " at" +
              leaves.text(v));
        break;
      }
      bool honest = true;
      for (Ref n : toposort(after)) {
        auto value = values.find(n.node());
        if (value == values.end() || within_bounds(n, value->second)) continue;
        fault(": " + value_text(n.dtype(), value->second) + " is not in [" + std::to_string(n.lo()) + "," +
              std::to_string(n.hi()) + "] of " + expression_text(n) + " at" + leaves.text(v));
        honest = false;
        break;
      }
      if (!honest) break;
    }
  }
  return report;
}

}  // namespace pg
