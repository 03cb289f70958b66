#include "ir/print.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <limits>

#include <absl/container/flat_hash_set.h>

#include "ir/scalar.h"
#include "ir/text.h"

namespace pg {
namespace {

using text::Type;

void put_int(std::string& out, std::int64_t v) {
  char buffer[24];
  out.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, v).ptr);
}

void put_hex(std::string& out, std::uint64_t v) {
  char buffer[24];
  out += "0x";
  out.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, v, 16).ptr);
}

void put_string(std::string& out, std::string_view s) {
  constexpr char kHex[] = "0123456789abcdef";
  out += '"';
  for (char c : s) {
    auto u = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (u < 32 || u == 127) {
      out += "\\x";
      out += kHex[u >> 4];
      out += kHex[u & 15];
    } else {
      out += c;
    }
  }
  out += '"';
}

// The Const whose value a literal can name, alone or as a splat; null if n is no such thing.
Ref literal_of(Ref n) {
  Ref c = n;
  if (n.is(Op::Splat) && n->arg.i == 0 && n.lanes() > 1 && n.src(0).dtype() == n.dtype()) c = n.src(0);
  if (!c.is_const() || c.lanes() != 1 || c.nsrc() || c.dtype() == DType::Void) return nullptr;
  if (!is_float(c.dtype())) return wrap(c.dtype(), c.i()) == c.i() ? c : Ref();
  double quiet = std::isnan(c.f()) ? std::numeric_limits<double>::quiet_NaN() : round_to(c.dtype(), c.f());
  return std::bit_cast<std::uint64_t>(quiet) == std::bit_cast<std::uint64_t>(c.f()) ? c : Ref();
}

void put_literal(std::string& out, Ref n, bool with_type) {
  Ref c = literal_of(n);
  if (c.dtype() == DType::Bool) {
    out += c.i() ? "true" : "false";
  } else if (c.dtype() == DType::U64) {
    char buffer[24];
    out.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, static_cast<std::uint64_t>(c.i())).ptr);
  } else if (!is_float(c.dtype())) {
    put_int(out, c.i());
  } else {
    char buffer[40];
    bool wide = c.dtype() == f64 || c.dtype() == DType::WeakFloat;
    char* end = wide ? std::to_chars(buffer, buffer + sizeof buffer, c.f()).ptr
                     : std::to_chars(buffer, buffer + sizeof buffer, static_cast<float>(c.f())).ptr;
    std::string_view digits(buffer, static_cast<std::size_t>(end - buffer));
    out += digits;
    if (digits.find_first_of(".en") == std::string_view::npos) out += ".0";
  }
  if (with_type) {
    out += ':';
    out += text::name(text::type_of(n));
  }
}

// Whether a literal outside elementwise ops reads as this one without its type.
bool has_default_type(Ref n) {
  DType t = n.dtype();
  return n.lanes() == 1 && (t == DType::WeakInt || t == DType::WeakFloat || t == DType::Bool);
}

// Whether a tuple reads as this Shape.
bool is_tuple(Ref n) {
  if (!n.is(Op::Shape) || n.dtype() != DType::Void || n.lanes() != 1) return false;
  if (n.nsrc() == 0) return n.has_object();
  if (n.has_object()) return false;
  for (Node* d : n.srcs())
    if (!(Ref(d).is_const() && Ref(d).dtype() == DType::WeakInt && literal_of(d))) return true;
  return false;
}

bool stands_anywhere(Ref n) { return literal_of(n) || (n.nsrc() == 0 && is_tuple(n)); }

bool put_argument(std::string& out, Ref n) {
  const OpInfo& row = info(n.op());
  std::int64_t i = n.i();
  switch (row.arg) {
    case ArgKind::None:
      if (!i) return false;
      put_int(out += '[', i);
      break;
    case ArgKind::Int:
      put_int(out += '[', i);
      break;
    case ArgKind::Value:
      put_hex(out += '[', static_cast<std::uint64_t>(i));
      break;
    case ArgKind::Range: {
      put_int(out += '[', n.range_id());
      out += ", ";
      if (n.range_kind() <= RangeKind::Lane)
        out += name(n.range_kind());
      else
        put_int(out, i & 255);
      break;
    }
    case ArgKind::Reduce: {
      out += '[';
      if ((i & 255) < kOpCount)
        out += info(n.reduce_op()).name;
      else
        put_int(out, i & 255);
      if (n.is(Op::Acc) || n.nsrc() > 1) {  // a number there, a mask of axes elsewhere
        if (n.reduce_axes()) put_int(out += "; ", static_cast<std::int64_t>(n.reduce_axes()));
      } else {
        for (int axis = 0; axis < 56; ++axis)
          if (n.reduce_axes() >> axis & 1) put_int(out += ", ", axis);
      }
      break;
    }
    case ArgKind::Ints:
      if (!n.has_object()) return false;
      out += '[';
      for (std::size_t k = 0; k < n.ints().size(); ++k) put_int(k ? out += ", " : out, n.ints()[k]);
      break;
    case ArgKind::Str:
      if (!n.has_object()) return false;
      put_string(out += '[', n.str());
      break;
    case ArgKind::Object: {
      if (!n.has_object()) return false;
      std::string s = n->arg.p->text();
      out += '[';
      if (text::object_length(s) == s.size())
        out += s;
      else
        put_string(out += '#', s);
      break;
    }
  }
  out += ']';
  return true;
}

const text::Operator* operator_of(Ref n) {
  for (const text::Operator& o : text::kOperators)
    if (o.op == n.op())
      return o.symbol != "/" || (o.op == Op::Div) == is_float(n.src(0).dtype()) ? &o : nullptr;
  return nullptr;
}

bool is_shift_or_bits(int binds) { return binds == text::kShiftBinds || binds <= text::kAndBinds; }

// Writes one node into `out`. `operand(out, k)` writes source k, if that is no literal, and returns how tight
// its text binds. Returns how tight the whole binds.
template <class Operand>
int put_node(std::string& out, Ref n, Operand&& operand) {
  if (literal_of(n)) {
    put_literal(out, n, !has_default_type(n));
    return text::kPrimaryBinds;
  }
  int nsrc = n.nsrc();
  // Among operands of one type, a literal leaves out its type if another operand has it.
  bool fellows = text::literals_take_type(n.op());
  Ref fellow;
  if (fellows)
    for (int k = text::first_value(n.op()); k < nsrc && !fellow; ++k)
      if (!literal_of(n.src(k))) fellow = n.src(k);
  auto put_source = [&](int k) {
    Ref s = n.src(k);
    if (!literal_of(s)) return operand(out, k);
    bool bare = has_default_type(s);
    if (fellows && k >= text::first_value(n.op())) {
      if (!fellow)
        bare = false;
      else if (text::type_of(s) == text::type_of(fellow))
        bare = true;
      else if (s.dtype() != DType::Bool || fellow.dtype() == DType::Bool)
        bare = false;
    }
    put_literal(out, s, !bare);
    return text::kPrimaryBinds;
  };
  // An operand, in parentheses if its text binds less than `least`, or differently from `alike` where readers
  // would have to think. The parentheses are put around it once it is written.
  auto put_operand = [&](int k, int least, int alike = 0) {
    std::size_t start = out.size();
    int binds = put_source(k);
    if (binds < least || (alike && binds < text::kUnaryBinds && binds != alike)) {
      out.insert(start, 1, '(');
      out += ')';
    }
  };

  if (is_tuple(n)) {
    out += '(';
    int count = nsrc ? nsrc : static_cast<int>(n.ints().size());
    for (int k = 0; k < count; ++k) {
      if (k) out += ", ";
      if (nsrc)
        put_source(k);
      else
        put_int(out, n.ints()[static_cast<std::size_t>(k)]);
    }
    out += count == 1 ? ",)" : ")";
    return text::kPrimaryBinds;
  }

  Ref srcs[3];
  Type implied;
  for (int k = 0; k < std::min(nsrc, 3); ++k) srcs[k] = n.src(k);
  bool typed =
      !text::implied_type(n.op(), std::span<const Ref>(srcs, static_cast<std::size_t>(std::min(nsrc, 3))),
                          implied) ||
      implied != text::type_of(n);
  if (!typed && n->arg.i == 0) {
    if (n.is(Op::Neg) && !literal_of(n.src(0))) {
      out += '-';
      put_operand(0, text::kUnaryBinds);
      return text::kUnaryBinds;
    }
    if (n.is(Op::CmpNe) && n.src(0).dtype() == DType::Bool && !literal_of(n.src(0)) && literal_of(n.src(1)) &&
        text::type_of(n.src(0)) == text::type_of(n.src(1)) && literal_of(n.src(1)).i() == 1) {
      out += '!';
      put_operand(0, text::kUnaryBinds);
      return text::kUnaryBinds;
    }
    if (const text::Operator* o = operator_of(n)) {
      bool comparison = n.has(kComparison);
      int alike = is_shift_or_bits(o->binds) ? o->binds : 0;
      put_operand(0, comparison ? text::kShiftBinds : o->binds, alike);
      if (o->op == Op::Mul)
        out += '*';
      else
        ((out += ' ') += o->symbol) += ' ';
      put_operand(1, comparison ? text::kShiftBinds : o->binds + 1, alike);
      return o->binds;
    }
  }

  out += info(n.op()).name;
  if (typed) (out += '.') += text::name(text::type_of(n));
  bool argument = put_argument(out, n);
  if (nsrc || !(typed || argument)) {
    out += '(';
    for (int k = 0; k < nsrc; ++k) {
      if (k) out += ", ";
      put_source(k);
    }
    out += ')';
  }
  return text::kPrimaryBinds;
}

class Printer {
 public:
  Printer(Ref root, const PrintOptions& options)
      : root_(root), options_(options), order_(toposort(root)), known_(order_.size()) {
    for (Ref n : order_) {
      n->mark = next_++;
      for (Node* s : n.srcs()) ++at(s).uses;
      if (n.is(Op::Linear) || n.is(Op::Tuple))
        for (Node* s : n.srcs()) at(s).own_line = true;
    }
  }

  std::string run() {
    std::string body;
    int depth = 0;
    for (Ref n : order_) {
      if (n.is(root_) || !stands_anywhere(n)) write(n, body, depth);
    }
    return body;
  }

 private:
  struct Known {
    std::uint32_t uses = 0;
    bool own_line = false;
    std::int8_t binds = text::kPrimaryBinds;
    std::string text;  // what users write: a name, or the whole node
  };

  Known& at(Ref n) { return known_[n->mark]; }

  void write(Ref n, std::string& body, int& depth) {
    std::string line;
    int binds = put_node(line, n, [&](std::string& out, int k) { return put_known(out, n.src(k)); });
    if (n.is(root_)) {
      (body += line) += '\n';
      return;
    }
    Known& known = at(n);
    if (known.uses == 1 && !known.own_line && may_stand_inside(n) && line.size() <= options_.inline_width) {
      known.text = std::move(line);
      known.binds = static_cast<std::int8_t>(binds);
      return;
    }
    known.text = name_of(n);
    // Instructions are indented by the loops around them.
    bool instruction = root_.is(Op::Linear) && known.own_line;
    if (instruction && (n.is(Op::End) || n.is(Op::EndIf))) depth = std::max(0, depth - 1);
    body.append(static_cast<std::size_t>(instruction ? 2 * std::min(depth, 20) : 0), ' ');
    (((body += known.text) += " = ") += line) += '\n';
    if (instruction && (n.is(Op::Range) || n.is(Op::If))) ++depth;
  }

  int put_known(std::string& out, Ref n) {
    if (stands_anywhere(n)) return put_node(out, n, [](std::string&, int) { return 0; });
    out += at(n).text;
    return at(n).binds;
  }

  static bool may_stand_inside(Ref n) {
    return n.has(kElementwise) || n.is(Op::Index) || n.is(Op::Load) || n.is(Op::Splat) || n.is(Op::Extract) ||
           n.is(Op::Shape);
  }

  std::string name_of(Ref n) {
    std::string wish;
    auto numbered = [](char letter, std::int64_t number) {
      return number >= 0 && number < 1'000'000'000 ? letter + std::to_string(number) : std::string();
    };
    switch (n.op()) {
      case Op::Range:
        wish = numbered('r', n.range_id());
        break;
      case Op::Param:
        wish = numbered('p', n.i());
        break;
      case Op::ScalarParam:
        wish = numbered('s', n.i());
        break;
      case Op::Var:
      case Op::Special:
        if (n.has_object() && is_own_name(n.str())) wish = n.str();
        break;
      default:
        break;
    }
    if (!wish.empty() && taken_.insert(wish).second) return wish;
    return 'v' + std::to_string(count_++);
  }

  // A name that no number of ours can collide with.
  static bool is_own_name(std::string_view s) {
    if (s.empty() || s.size() > 40 || text::is_reserved(s)) return false;
    auto small = [](char c) { return c >= 'a' && c <= 'z'; };
    auto digit = [](char c) { return c >= '0' && c <= '9'; };
    if (!small(s[0]) && s[0] != '_') return false;
    for (char c : s)
      if (!small(c) && !digit(c) && !(c >= 'A' && c <= 'Z') && c != '_') return false;
    return !(s.size() > 1 && std::string_view("vrps").find(s[0]) != std::string_view::npos && digit(s[1]));
  }

  Ref root_;
  const PrintOptions& options_;
  std::vector<Ref> order_;
  std::uint32_t next_ = 0;
  std::vector<Known> known_;
  absl::flat_hash_set<std::string> taken_;
  std::size_t count_ = 0;
};

int put_brief(std::string& out, Ref n, int depth) {
  constexpr std::size_t kLongest = 400;
  if (!literal_of(n) && (depth < 0 || out.size() > kLongest)) {
    out += "..";
    return text::kPrimaryBinds;
  }
  if (n.nsrc() > 16) {
    ((out += info(n.op()).name) += '(') += std::to_string(n.nsrc()) + " sources)";
    return text::kPrimaryBinds;
  }
  return put_node(out, n, [&](std::string& o, int k) { return put_brief(o, n.src(k), depth - 1); });
}

}  // namespace

std::string print(Ref root, const PrintOptions& options) { return Printer(root, options).run(); }

std::string brief(Ref node, int depth) {
  std::string out;
  put_brief(out, node, depth);
  return out;
}

}  // namespace pg
