// A linear program as C with clang's vector extensions: one local variable for each value, loops as loops.
// Slower to compile than LLVM IR and read by people; the values are the same.
#include <algorithm>
#include <cmath>
#include <set>

#include <absl/container/flat_hash_map.h>
#include <fmt/format.h>

#include "ir/build.h"
#include "render/exact_alu.h"
#include "render/program.h"

namespace pg {
namespace {

using render::bits_of;
using render::ExactAlu;
using render::Operand;
using render::Prim;
using render::Shape;

constexpr std::string_view kPrelude = R"C(typedef signed char i8;
typedef unsigned char u8;
typedef short i16;
typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;
typedef float f32;
typedef double f64;
#define BITS(T, x) ({ __typeof__(x) from_ = (x); T to_; __builtin_memcpy(&to_, &from_, sizeof to_); to_; })
#define LOOP _Pragma("clang loop unroll(disable) vectorize(disable) interleave(disable)")
)C";

// Names of types: i32, f32x8; bool is u8, 0 or 1, and f16 is a type of its own only where it is computed.
// Those that memory is accessed through end in _m: they may alias anything and are aligned as one element is.
class CWriter final : public ExactAlu {
 public:
  using ExactAlu::ExactAlu;

  std::string scalar_type(DType t) const {
    if (t == DType::Bool) return "u8";
    if (t == bf16 || (t == f16 && !target().computes.has(f16))) return "u16";
    return std::string(name(t));
  }
  std::string type(Shape s) {
    if (is_weak(s.dtype) || s.dtype == DType::Void)
      throw InternalError("[c] a value of dtype " + std::string(name(s.dtype)));
    std::string scalar = scalar_type(s.dtype);
    if (s.lanes == 1) return scalar;
    std::string vector = fmt::format("{}x{}", scalar, s.lanes);
    if (types_.insert(vector).second)
      typedefs +=
          fmt::format("typedef {} {} __attribute__((ext_vector_type({})));\n", scalar, vector, s.lanes);
    return vector;
  }
  std::string memory_type(Shape s, int align = 0) {
    std::string value = type(s), memory = value + "_m";
    if (align) memory += std::to_string(align);
    if (types_.insert(memory).second)
      typedefs += fmt::format("typedef {} {} __attribute__((may_alias, aligned({})));\n", value, memory,
                              align ? align : static_cast<int>(itemsize(s.dtype)));
    return memory;
  }

  std::string constant(Shape s, Scalar v) const override {
    std::string t = scalar_type(s.dtype), text;
    if (is_float(s.dtype) && t != "u16") {
      double x = v.f;
      std::string_view suffix = s.dtype == f64 ? "" : "f";
      if (std::isnan(x))
        text = fmt::format("__builtin_nan{}(\"\")", suffix);
      else if (std::isinf(x))
        text = fmt::format("{}__builtin_inf{}()", x < 0 ? "-" : "", suffix);
      else
        text = fmt::format("{:a}{}", x, suffix);
      if (s.dtype == f16) text = "(f16)" + text;
    } else if (is_float(s.dtype)) {
      text = std::to_string(to_bits(s.dtype, v));
    } else if (s.dtype == u64 || s.dtype == u32) {
      text = std::to_string(static_cast<std::uint64_t>(v.i)) + "u";
      if (s.dtype == u64) text += "ll";
    } else if (v.i == int_min(i64)) {
      text = "(-9223372036854775807ll - 1)";
    } else {
      text = std::to_string(v.i) + (s.dtype == i64 ? "ll" : "");
    }
    return s.lanes == 1 ? fmt::format("(({}){})", t, text)
                        : fmt::format("(({}x{})({}){})", t, s.lanes, t, text);
  }
  std::string select(Shape s, const std::string& condition, const std::string& yes,
                     const std::string& no) override {
    if (s.lanes == 1) return emit(s, "{} ? {} : {}", condition, yes, no);
    return emit(s, "{} ? {} : {}", mask(s, condition), yes, no);
  }

  /// A variable of its own for the value of an expression, formatted as by fmt.
  template <class... Args>
  std::string emit(Shape s, fmt::format_string<Args...> format, Args&&... args) {
    std::string name = "v" + std::to_string(next_++);
    line("{} {} = {};", type(s), name, fmt::format(format, std::forward<Args>(args)...));
    return name;
  }
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    body.append(static_cast<std::size_t>(2 * depth), ' ');
    fmt::format_to(std::back_inserter(body), format, std::forward<Args>(args)...);
    body += '\n';
  }

  std::string typedefs, body;
  int depth = 1;

 protected:
  std::string binary(Prim op, Shape s, const std::string& a, const std::string& b, bool) override {
    // Small unsigned operands would become int, which may overflow, so they are widened.
    bool narrow = s.lanes == 1 && bits_of(s.dtype) < 32;
    std::string u = s.dtype == DType::Bool || is_float(s.dtype)
                        ? type(s)
                        : type({narrow ? u32 : unsigned_of(s.dtype), s.lanes});
    auto wrapped = [&](std::string_view sign) {
      return emit(s, "({})(({}){} {} ({}){})", type(s), u, a, sign, u, b);
    };
    auto plain = [&](std::string_view sign) { return emit(s, "({})({} {} {})", type(s), a, sign, b); };
    std::string exact_u = type({unsigned_of(s.dtype), s.lanes});
    auto as_unsigned = [&](std::string_view sign) {
      return emit(s, "({})(({}){} {} ({}){})", type(s), exact_u, a, sign, exact_u, b);
    };
    std::string i = type({signed_of(s.dtype), s.lanes});
    switch (op) {
      case Prim::Add:
        return wrapped("+");
      case Prim::Sub:
        return wrapped("-");
      case Prim::Mul:
        return wrapped("*");
      case Prim::UDiv:
        return as_unsigned("/");
      case Prim::URem:
        return as_unsigned("%");
      case Prim::LShr:
        return emit(s, "({})(({}){} >> (({}){} & {}))", type(s), exact_u, a, exact_u, b,
                    bits_of(s.dtype) - 1);
      case Prim::Shl:
        return emit(s, "({})(({}){} << (({}){} & {}))", type(s), u, a, u, b, bits_of(s.dtype) - 1);
      case Prim::SDiv:
      case Prim::FDiv:
        return plain("/");
      case Prim::SRem:
        return plain("%");
      case Prim::AShr:
        return plain(">>");
      case Prim::And:
        return plain("&");
      case Prim::Or:
        return plain("|");
      case Prim::Xor:
        return plain("^");
      case Prim::FAdd:
        return plain("+");
      case Prim::FSub:
        return plain("-");
      case Prim::FMul:
        return plain("*");
      case Prim::UMin:
        return emit(s, "({})__builtin_elementwise_min(({}){}, ({}){})", type(s), exact_u, a, exact_u, b);
      case Prim::UMax:
        return emit(s, "({})__builtin_elementwise_max(({}){}, ({}){})", type(s), exact_u, a, exact_u, b);
      case Prim::SMin:
        return emit(s, "__builtin_elementwise_min({}, {})", a, b);
      case Prim::SMax:
        return emit(s, "__builtin_elementwise_max({}, {})", a, b);
      case Prim::Eq:
      case Prim::FEq:
        return compare(s, a, "==", b);
      case Prim::Ne:
      case Prim::FNe:
        return compare(s, a, "!=", b);
      case Prim::FLt:
        return compare(s, a, "<", b);
      case Prim::FGt:
        return compare(s, a, ">", b);
      case Prim::FGe:
        return compare(s, a, ">=", b);
      case Prim::SLt:
        return compare(s, fmt::format("({}){}", i, a), "<", fmt::format("({}){}", i, b));
      case Prim::ULt:
        return compare(s, fmt::format("({}){}", exact_u, a), "<", fmt::format("({}){}", exact_u, b));
      case Prim::FUno: {
        std::string x = compare(s, a, "!=", a);
        return a == b ? x : emit({boolean, s.lanes}, "{} | {}", x, compare(s, b, "!=", b));
      }
      default:
        throw InternalError("[c] no such primitive");
    }
  }
  std::string unary(Prim op, Shape to, DType from, const std::string& x) override {
    std::string t = type(to), half = to.lanes == 1 ? "_Float16" : fmt::format("halfx{}", to.lanes);
    auto convert = [&](const std::string& v, const std::string& type) {
      return to.lanes == 1 ? fmt::format("({}){}", type, v)
                           : fmt::format("__builtin_convertvector({}, {})", v, type);
    };
    auto bits = [&](const std::string& v, const std::string& type) {
      return to.lanes == 1 ? fmt::format("BITS({}, {})", type, v) : fmt::format("({}){}", type, v);
    };
    switch (op) {
      case Prim::FNeg:
        return emit(to, "-{}", x);
      case Prim::FTrunc:
        return emit(to, "__builtin_elementwise_trunc({})", x);
      case Prim::FSqrt:
        return emit(to, "__builtin_elementwise_sqrt({})", x);
      case Prim::FAbs:
        return emit(to, "__builtin_elementwise_abs({})", x);
      case Prim::Bits:
        return emit(to, "{}", bits(x, t));
      case Prim::SExt:
        return emit(to, "{}", convert(fmt::format("({}){}", type({signed_of(from), to.lanes}), x), t));
      case Prim::ZExt:
        return emit(to, "{}", convert(fmt::format("({}){}", type({unsigned_of(from), to.lanes}), x), t));
      case Prim::HalfToF32:
        return emit(to, "{}", convert(bits(x, half_type(to.lanes)), t));
      case Prim::F32ToHalf:
        return emit(to, "{}", bits("(" + convert(x, half_type(to.lanes)) + ")", t));
      default:
        return emit(to, "{}", convert(x, t));
    }
  }
  std::string fma(Shape s, const std::string& a, const std::string& b, const std::string& c) override {
    return emit(s, "__builtin_elementwise_fma({}, {}, {})", a, b, c);
  }

 private:
  static DType by_size(std::size_t bytes, bool sign) {
    switch (bytes) {
      case 1:
        return sign ? i8 : u8;
      case 2:
        return sign ? i16 : u16;
      case 4:
        return sign ? i32 : u32;
      default:
        return sign ? i64 : u64;
    }
  }
  static DType unsigned_of(DType t) { return by_size(itemsize(t), false); }
  static DType signed_of(DType t) { return by_size(itemsize(t), true); }

  // Comparing vectors gives 0 or -1 in integers of their size; bools are 0 or 1 in bytes.
  std::string compare(Shape s, const std::string& a, std::string_view sign, const std::string& b) {
    Shape result{boolean, s.lanes};
    if (s.lanes == 1) return emit(result, "{} {} {}", a, sign, b);
    std::string byte = type({i8, s.lanes});
    return emit(result, "({})(__builtin_convertvector({} {} {}, {}) & ({})1)", type(result), a, sign, b, byte,
                byte);
  }
  std::string mask(Shape s, const std::string& condition) {
    return fmt::format("(__builtin_convertvector({}, {}) != 0)", condition,
                       type({signed_of(s.dtype), s.lanes}));
  }
  std::string half_type(int lanes) {
    if (lanes == 1) return "_Float16";
    std::string t = fmt::format("halfx{}", lanes);
    if (types_.insert(t).second)
      typedefs += fmt::format("typedef _Float16 {} __attribute__((ext_vector_type({})));\n", t, lanes);
    return t;
  }

  std::set<std::string> types_;
  int next_ = 0;
};

class CRenderer {
 public:
  CRenderer(Ref linear, const ProgramInfo& program, const Target& target)
      : linear_(linear), program_(program), w_(target) {}

  std::string render() {
    for (const ScratchPart& part : scratch_layout(linear_)) scratch_[part.local.node()] = part.offset;
    arguments();
    for (Node* n : linear_.srcs()) instruction(n);
    if (w_.depth != 1) throw InternalError("[c] a loop is not closed in " + program_.name);
    // What went past the caches is in no order with what tells others that the loop has ended.
    if (streams_) w_.line("__atomic_thread_fence(__ATOMIC_SEQ_CST);");
    std::string text(kPrelude);
    if (w_.target().computes.has(f16)) text += "typedef _Float16 f16;\n";
    text += w_.typedefs;
    // With no width given the compiler would split what is wider than it prefers.
    return text + fmt::format(
                      "\n__attribute__((min_vector_width({})))\nvoid {}(void* const* buffers, const i64* "
                      "vars, i64 thread, void* scratch) {{\n{}}}\n",
                      std::max(w_.target().vector_bytes, 16) * 8, program_.name, w_.body);
  }

 private:
  static Shape shape(Ref n) { return {n.dtype(), n.lanes()}; }
  static Ref constant_of(Ref n) {
    if (n.is(Op::Splat)) n = n.src(0);
    return n.is_const() ? n : nullptr;
  }

  // The leaves, all of them at the top.
  void arguments() {
    for (Ref n : toposort(linear_)) {
      std::string& known = known_[n.node()];
      switch (n.op()) {
        case Op::Param:
        case Op::Local: {
          std::string t = w_.memory_type({n.dtype(), 1});
          known = fmt::format("{}{}", n.is(Op::Param) ? "p" : "s", n.i());
          if (n.is(Op::Param))
            w_.line("{}*{} {} = buffers[{}];", t, program_.distinct ? " restrict" : "", known, n.i());
          else
            w_.line("{}* {} = (void*)((u8*)scratch + {});", t, known, scratch_.at(n.node()));
          break;
        }
        case Op::Special:
          if (n.str() != "thread")
            throw InternalError("[c] Special " + n.str() + " on a device without groups");
          known = w_.emit(shape(n), "thread");
          break;
        case Op::ScalarParam:
          known = w_.emit(shape(n), "vars[{}]", n.i());
          break;
        case Op::Iota: {
          std::string list;
          for (int i = 0; i < n.lanes(); ++i)
            list += fmt::format("{}{}", i ? ", " : "", w_.constant({n.dtype(), 1}, int_scalar(i)));
          known = n.lanes() == 1 ? list : w_.emit(shape(n), "{{{}}}", list);
          break;
        }
        default:
          known_.erase(n.node());
      }
    }
  }

  std::string value(Ref n) {
    n = strip_after(n);
    if (auto it = known_.find(n.node()); it != known_.end()) return it->second;
    Ref c = constant_of(n);
    if (!c)
      throw InternalError(
          fmt::format("[c] {} is used in {} before it stands", info(n.op()).name, program_.name));
    w_.type(shape(n));
    return w_.constant(shape(n), c->arg);
  }

  void instruction(Ref n) {
    switch (n.op()) {
      case Op::Const:
      case Op::Shape:
      case Op::Param:
      case Op::ScalarParam:
      case Op::Special:
      case Op::Iota:
      case Op::Local:
      case Op::Index:
      case Op::After:
        return;
      case Op::Range: {
        std::string i = fmt::format("i{}", next_loop_++);
        known_[n.node()] = i;
        w_.line("LOOP for ({} {} = 0; {} < {}; ++{}) {{", w_.type(shape(n)), i, i, value(n.src(0)), i);
        ++w_.depth;
        return;
      }
      case Op::End:
        for (Node* s : n.srcs())
          if (s->op == Op::Range) {
            --w_.depth;
            w_.line("}}");
          }
        return;
      case Op::Acc:
        known_[n.node()] = w_.emit(shape(n), "{}", value(n.src(0)));
        return;
      case Op::Load:
        return load(n);
      case Op::Store:
        return store(n);
      case Op::Splat:
        if (!constant_of(n))
          known_[n.node()] = w_.emit(shape(n), "({}){}", w_.type(shape(n)), value(n.src(0)));
        return;
      case Op::Extract:
        known_[n.node()] = w_.emit(shape(n), "{}[{}]", value(n.src(0)), n.i());
        return;
      case Op::Reduce:
        return reduce(n);
      default:
        break;
    }
    if (!n.has(kElementwise))
      throw InternalError(fmt::format("[c] {} in {}", info(n.op()).name, program_.name));
    std::vector<Operand> operands;
    for (Node* s : n.srcs()) {
      if (s->lanes != n.lanes())
        throw InternalError(fmt::format("[c] {} of {} and {} lanes", info(n.op()).name, n.lanes(), s->lanes));
      operands.push_back({value(s), strip_after(s)});
    }
    known_[n.node()] = w_.alu(n.op(), shape(n), n.src(n.is(Op::Where) ? 1 : 0).dtype(), operands, n);
  }

  struct Access {
    Shape value;
    std::string base, offset, gate;  // no gate: always on
    bool scattered, wide_gate;
  };
  Access access(Ref index, Shape s) {
    index = strip_after(index);
    if (!index.is(Op::Index)) throw InternalError(fmt::format("[c] access to {}", info(index.op()).name));
    Ref offset = strip_after(index.src(1)), gate = index.nsrc() > 2 ? strip_after(index.src(2)) : nullptr;
    if (gate && gate.is(Op::Splat)) gate = strip_after(gate.src(0));
    if (gate && gate.is_const(1)) gate = nullptr;
    Access a{s,
             value(buffer_of(index)),
             value(offset),
             gate ? value(gate) : "",
             offset.lanes() > 1,
             gate && gate.lanes() > 1};
    if ((a.scattered && offset.lanes() != s.lanes) || (a.wide_gate && gate.lanes() != s.lanes))
      throw InternalError("[c] lanes of an access differ");
    return a;
  }
  std::string place(const Access& a) {
    if (a.value.lanes == 1) return fmt::format("{}[{}]", a.base, a.offset);
    return fmt::format("*({}*)({} + {})", w_.memory_type(a.value), a.base, a.offset);
  }
  // Of lane l of a masked access: its gate, and where it goes.
  static std::string lane_gate(const Access& a) {
    return a.gate.empty() ? "1" : a.wide_gate ? a.gate + "[l]" : a.gate;
  }
  static std::string lane_place(const Access& a) {
    return a.scattered ? fmt::format("{}[{}[l]]", a.base, a.offset)
                       : fmt::format("{}[{} + l]", a.base, a.offset);
  }

  void load(Ref n) {
    Ref from = strip_after(n.src(0));
    if (from.is(Op::Acc)) {
      known_[n.node()] = w_.emit(shape(n), "{}", value(from));
      return;
    }
    Access a = access(from, shape(n));
    std::string other = n.nsrc() > 1
                            ? value(n.src(1))
                            : w_.constant(a.value, is_float(n.dtype()) ? float_scalar(0) : int_scalar(0));
    w_.type(a.value);
    // Any byte but 0 is true.
    std::string_view truth = n.dtype() == DType::Bool ? " != 0" : "";
    std::string x;
    if (a.scattered || a.wide_gate) {
      x = w_.emit(a.value, "{}", other);
      w_.line("for (int l = 0; l < {}; ++l) if ({}) {}[l] = {}{};", n.lanes(), lane_gate(a), x, lane_place(a),
              truth);
    } else if (n.lanes() > 1 && !truth.empty()) {
      x = w_.emit(a.value, "{}", other);
      w_.line("{}for (int l = 0; l < {}; ++l) {}[l] = {} != 0;", a.gate.empty() ? "" : "if (" + a.gate + ") ",
              n.lanes(), x, lane_place(a));
    } else if (!a.gate.empty() && n.lanes() > 1) {
      x = w_.emit(a.value, "{}", other);
      w_.line("if ({}) {} = {};", a.gate, x, place(a));
    } else if (!a.gate.empty()) {
      x = w_.emit(a.value, "{} ? {}{} : {}", a.gate, place(a), truth, other);
    } else {
      x = w_.emit(a.value, "{}{}", place(a), truth);
    }
    known_[n.node()] = x;
  }

  void store(Ref n) {
    Ref to = strip_after(n.src(0));
    std::string x = value(n.src(1));
    if (to.is(Op::Acc)) return w_.line("{} = {};", value(to), x);
    Access a = access(to, shape(n.src(1)));
    if (a.scattered || a.wide_gate)
      w_.line("for (int l = 0; l < {}; ++l) if ({}) {} = {}[l];", a.value.lanes, lane_gate(a), lane_place(a),
              x);
    else if (int align = stream_alignment(n)) {
      // Where the buffer is aligned, which only a launch knows.
      streams_ = true;
      w_.line("if (((u64){} & {}) == 0) __builtin_nontemporal_store({}, ({}*)({} + {}));", a.base, align - 1,
              x, w_.memory_type(a.value, align), a.base, a.offset);
      w_.line("else {} = {};", place(a), x);
    } else
      w_.line("{}{} = {};", a.gate.empty() ? "" : "if (" + a.gate + ") ", place(a), x);
  }

  // By halves: lane i with lane i + n/2.
  void reduce(Ref n) {
    Ref x = n.src(0);
    if (n.nsrc() > 1) throw InternalError("[c] a Reduce over ranges");
    std::string v = value(x);
    for (int lanes = x.lanes() / 2; lanes > 0; lanes /= 2) {
      std::string halves[2];
      for (int h = 0; h < 2; ++h) {
        std::string list;
        for (int i = 0; i < lanes; ++i) list += fmt::format(", {}", h * lanes + i);
        halves[h] = lanes == 1 ? fmt::format("{}[{}]", v, h)
                               : w_.emit({x.dtype(), lanes}, "__builtin_shufflevector({}, {}{})", v, v, list);
      }
      v = w_.alu(n.reduce_op(), {x.dtype(), lanes}, x.dtype(), {{halves[0], nullptr}, {halves[1], nullptr}});
    }
    known_[n.node()] = v;
  }

  Ref linear_;
  const ProgramInfo& program_;
  CWriter w_;
  absl::flat_hash_map<const Node*, std::string> known_;
  absl::flat_hash_map<const Node*, std::int64_t> scratch_;
  int next_loop_ = 0;
  bool streams_ = false;
};

}  // namespace

std::string render_c(Ref linear, const ProgramInfo& program, const Target& target) {
  return CRenderer(linear, program, target).render();
}

}  // namespace pg
