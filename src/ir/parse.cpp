#include "ir/parse.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <mutex>

#include <absl/container/flat_hash_map.h>
#include <absl/container/inlined_vector.h>

#include "ir/build.h"
#include "ir/text.h"

namespace pg {
namespace {

using text::Type;

struct ObjectParsers {
  std::mutex mutex;
  std::map<std::string, ObjectParser, std::less<>> by_tag;
};
ObjectParsers& object_parsers() {
  static ObjectParsers& parsers = *new ObjectParsers;
  return parsers;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_word(char c) { return (c >= 'a' && c <= 'z') || is_upper(c) || is_digit(c) || c == '_'; }

const absl::flat_hash_map<std::string_view, Op>& ops_by_name() {
  static const auto& table = *[] {
    auto* t = new absl::flat_hash_map<std::string_view, Op>;
    for (int i = 0; i < kOpCount; ++i) t->emplace(kOps[i].name, static_cast<Op>(i));
    return t;
  }();
  return table;
}

// Which sources must be Shapes for the node to be made at all; a bit each.
unsigned shape_sources(Op op) {
  switch (op) {
    case Op::Buffer:
    case Op::Param:
    case Op::Arange:
      return 1;
    case Op::Reshape:
    case Op::Expand:
      return 2;
    case Op::Pad:
    case Op::Shrink:
      return 6;
    default:
      return 0;
  }
}

// What an expression is before its surroundings say what a number means.
struct Value {
  enum Kind : std::uint8_t { Made, Typed, Int, Float, Bool } kind = Made;  // Typed: a literal with its type
  bool flag = false;        // Int and Float: negative; Bool: the value
  Ref node;                 // Made and Typed
  std::string_view digits;  // Int and Float, without sign; points into the text
  bool bare() const { return kind >= Int; }
};
using Values = absl::InlinedVector<Value, 8>;

class Parser {
 public:
  Parser(std::string_view text, const ParseOptions& options)
      : at_(text.data()),
        end_(text.data() + text.size()),
        line_start_(at_),
        line_(options.first_line),
        options_(options) {
    if (options.names)
      for (auto& [name, node] : *options.names) names_.emplace(name, node);
  }

  Ref run() {
    Ref last;
    for (;;) {
      skip();
      if (at_ == end_) break;
      if (*at_ == '\n' || *at_ == ';') {
        advance();
        continue;
      }
      last = statement();
      skip();
      if (at_ != end_ && *at_ != '\n' && *at_ != ';')
        fail(at_, "expected an operator or the end of the line");
    }
    if (!last) fail(at_, "expected a graph, found nothing");
    return last;
  }

 private:
  static constexpr int kDeepest = 300;

  [[noreturn]] void fail(const char* where, const std::string& what) const {
    int line = line_;
    const char* start = line_start_;
    // Only ever a little behind: what is complained about began on this line or, in brackets, on an earlier
    // one.
    while (where < start) {
      --line;
      --start;
      while (start != begin_ && start[-1] != '\n') --start;
    }
    throw ValueError("[parse] " + std::to_string(line) + ':' + std::to_string(where - start + 1) + ": " +
                     what);
  }

  // --- characters ---

  void advance() {
    if (*at_++ == '\n') {
      ++line_;
      line_start_ = at_;
    }
  }
  void skip() {
    while (at_ != end_) {
      if (*at_ == ' ' || *at_ == '\t' || *at_ == '\r')
        ++at_;
      else if (*at_ == '#')
        while (at_ != end_ && *at_ != '\n') ++at_;
      else if (*at_ == '\n' && nesting_)
        advance();
      else
        return;
    }
  }
  bool peek(char c) {
    skip();
    return at_ != end_ && *at_ == c;
  }
  bool take(char c) {
    if (!peek(c)) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail(at_, std::string("expected '") + c + '\'' + found());
  }
  std::string found() const {
    if (at_ == end_) return ", found the end";
    if (*at_ == '\n') return ", found the end of the line";
    auto c = static_cast<unsigned char>(*at_);
    return c < 32 || c > 126 ? "" : std::string(", found '") + *at_ + '\'';
  }
  std::string_view word() {
    const char* start = at_;
    while (at_ != end_ && is_word(*at_)) ++at_;
    return {start, static_cast<std::size_t>(at_ - start)};
  }

  // Between brackets, lines may end anywhere.
  struct Nest {
    explicit Nest(Parser& p) : parser(p) {
      if (++p.nesting_ > kDeepest) p.fail(p.at_, "nested too deep");
    }
    ~Nest() { --parser.nesting_; }
    Nest(const Nest&) = delete;
    Nest& operator=(const Nest&) = delete;
    Parser& parser;
  };

  // --- statements and expressions ---

  Ref statement() {
    const char* start = at_;
    if (is_word(*at_) && !is_digit(*at_) && !is_upper(*at_)) {
      std::string_view name = word();
      skip();
      if (at_ != end_ && *at_ == '=' && (at_ + 1 == end_ || at_[1] != '=')) {
        ++at_;
        if (text::is_reserved(name))
          fail(start, '"' + std::string(name) + "\" is a constant and cannot name a node");
        skip();
        Ref node = settle(expression(0));
        if (!names_.emplace(name, node).second) fail(start, '"' + std::string(name) + "\" is defined twice");
        if (options_.names) options_.names->emplace(name, node);
        return node;
      }
      at_ = start;
    }
    return settle(expression(0));
  }

  struct Infix {
    std::string_view symbol;
    int binds;
  };
  bool peek_infix(Infix& out) {
    skip();
    if (at_ == end_) return false;
    char c = *at_, next = at_ + 1 == end_ ? '\0' : at_[1];
    switch (c) {
      case '*':
      case '/':
      case '%':
        out = {{at_, 1}, 10};
        return true;
      case '+':
      case '-':
        out = {{at_, 1}, 9};
        return true;
      case '<':
      case '>':
        if (next == c)
          out = {{at_, 2}, text::kShiftBinds};
        else
          out = {{at_, next == '=' ? 2u : 1u}, 7};
        return true;
      case '=':
      case '!':
        if (next != '=') return false;
        out = {{at_, 2}, 6};
        return true;
      case '&':
        out = {{at_, 1}, text::kAndBinds};
        return true;
      case '^':
        out = {{at_, 1}, 4};
        return true;
      case '|':
        out = {{at_, 1}, 3};
        return true;
      default:
        return false;
    }
  }

  Value expression(int least) {
    Value left = unary();
    for (Infix infix; peek_infix(infix) && infix.binds >= least;) {
      const char* where = at_;
      at_ += infix.symbol.size();
      Value right = expression(infix.binds + 1);
      left = Value{.node = binary(infix.symbol, left, right, where)};
    }
    return left;
  }

  Ref binary(std::string_view symbol, Value left, Value right, const char* where) {
    Values values{left, right};
    if (symbol == ">" || symbol == "<=") std::swap(values[0], values[1]);
    agree(Op::Add, values, where);
    if (symbol == ">") return elementwise(Op::CmpLt, values, where);
    if (symbol == ">=" || symbol == "<=") return negate(elementwise(Op::CmpLt, values, where), where);
    if (symbol == "/")
      return elementwise(is_float(values[0].node.dtype()) ? Op::Div : Op::FloorDiv, values, where);
    for (const text::Operator& o : text::kOperators)
      if (o.symbol == symbol) return elementwise(o.op, values, where);
    fail(where, "unknown operator");
  }

  Ref negate(Ref x, const char* where) {
    Values values{Value{.node = x}, Value{.kind = Value::Bool, .flag = true}};
    agree(Op::CmpNe, values, where);
    return elementwise(Op::CmpNe, values, where);
  }

  Value unary() {
    skip();
    if (at_ == end_ || (*at_ != '-' && *at_ != '!')) return primary();
    const char* where = at_++;
    Nest nest(*this);
    if (*where == '!') return {.node = negate(settle(unary()), where)};
    if (at_ != end_ && is_digit(*at_)) return number(true);
    if (starts_with("inf")) return typed({.kind = Value::Float, .flag = true, .digits = word()});
    Values values{unary()};
    settle(values[0]);
    return {.node = elementwise(Op::Neg, values, where)};
  }
  bool starts_with(std::string_view s) const {
    return static_cast<std::size_t>(end_ - at_) >= s.size() && std::string_view(at_, s.size()) == s &&
           (at_ + s.size() == end_ || !is_word(at_[s.size()]));
  }

  Value primary() {
    skip();
    if (at_ == end_) fail(at_, "expected a node, found the end");
    const char* where = at_;
    if (is_digit(*at_)) return number();
    if (*at_ == '(') return parenthesis();
    if (is_upper(*at_)) return {.node = call()};
    if (!is_word(*at_)) fail(at_, "expected a node" + found());
    std::string_view name = word();
    if (text::is_reserved(name)) {
      if (name == "true" || name == "false") return typed({.kind = Value::Bool, .flag = name == "true"});
      return typed({.kind = Value::Float, .digits = name});
    }
    auto it = names_.find(name);
    if (it == names_.end()) fail(where, "nothing is named \"" + std::string(name) + '"');
    return {.node = it->second};
  }

  Value parenthesis() {
    const char* where = at_++;
    Nest nest(*this);
    Values values;
    if (!take(')')) {
      values.push_back(expression(0));
      if (!peek(',')) {
        expect(')');
        return values[0];
      }
      while (take(',')) {
        if (peek(')')) break;
        values.push_back(expression(0));
      }
      expect(')');
    }
    bool concrete = true;
    for (const Value& v : values) concrete &= v.kind == Value::Int;
    if (!concrete) {
      absl::InlinedVector<Ref, 8> dims;
      for (Value& v : values) dims.push_back(settle(v));
      if (options_.canonical) return {.node = shape_node(std::span<const Ref>(dims))};
      return {.node = build(Op::Shape, {}, dims, Arg{.p = nullptr}, where)};
    }
    absl::InlinedVector<std::int64_t, 8> dims;
    for (const Value& v : values) dims.push_back(integer(v, std::numeric_limits<std::int64_t>::min(), 0));
    return {.node = shape_node(Dims(dims))};
  }

  // --- literals ---

  Value number(bool negative = false) {
    const char* start = at_;
    bool whole = true;
    while (at_ != end_ && is_digit(*at_)) ++at_;
    if (at_ != end_ && *at_ == '.' && at_ + 1 != end_ && is_digit(at_[1])) {
      whole = false;
      for (++at_; at_ != end_ && is_digit(*at_);) ++at_;
    }
    if (at_ != end_ && (*at_ == 'e' || *at_ == 'E')) {
      whole = false;
      ++at_;
      if (at_ != end_ && (*at_ == '-' || *at_ == '+')) ++at_;
      if (at_ == end_ || !is_digit(*at_)) fail(start, "a number ends in its exponent");
      while (at_ != end_ && is_digit(*at_)) ++at_;
    }
    if (at_ != end_ && is_word(*at_)) fail(at_, "a number cannot go on like this");
    Value v{.kind = whole ? Value::Int : Value::Float, .flag = negative};
    v.digits = {start, static_cast<std::size_t>(at_ - start)};
    return typed(v);
  }

  // A literal, and the type after it if there is one.
  Value typed(Value literal) {
    if (at_ == end_ || *at_ != ':') return literal;
    ++at_;
    Type type = this->type();
    return {.kind = Value::Typed, .node = constant(literal, type)};
  }

  Type type() {
    const char* start = at_;
    std::string_view w = word(), base = w;
    Type type;
    std::size_t x = w.rfind('x');
    if (x != std::string_view::npos && x + 1 < w.size()) {
      base = w.substr(0, x);
      auto [p, error] = std::from_chars(w.data() + x + 1, w.data() + w.size(), type.lanes);
      if (error != std::errc() || p != w.data() + w.size() || type.lanes < 1 || type.lanes > 65535)
        fail(start + x, "expected a number of lanes after 'x'");
    }
    for (int t = 0; t < kDTypeCount; ++t)
      if (name(static_cast<DType>(t)) == base) {
        type.dtype = static_cast<DType>(t);
        return type;
      }
    fail(start, "expected a type such as f32 or i32x8" +
                    (base.empty() ? found() : ", found \"" + std::string(base) + '"'));
  }

  std::int64_t integer(const Value& v, std::int64_t least, std::uint64_t most) {
    std::uint64_t u = 0;
    auto [p, error] = std::from_chars(v.digits.data(), v.digits.data() + v.digits.size(), u);
    std::uint64_t limit = v.flag ? 0 - static_cast<std::uint64_t>(least) : most ? most : INT64_MAX;
    if (error != std::errc() || u > limit) fail(v.digits.data(), "the number is out of range");
    return static_cast<std::int64_t>(v.flag ? 0 - u : u);
  }

  // The constant of that type, splat over its lanes.
  Ref constant(const Value& v, Type type) {
    DType t = type.dtype;
    const char* where = v.digits.empty() ? at_ : v.digits.data();
    Ref c;
    if (t == DType::Void) fail(where, "a constant cannot be void");
    if (v.kind == Value::Bool) {
      if (t != DType::Bool) fail(where, "true and false are of type bool, not " + std::string(name(t)));
      c = bool_const(v.flag);
    } else if (is_float(t)) {
      double d = real(v, t);
      c = float_const(t, v.flag ? -d : d);
    } else if (v.kind == Value::Float) {
      fail(where, std::string(v.digits) + " is no constant of type " + std::string(name(t)));
    } else if (t == DType::U64) {
      c = scalar_const(t, int_scalar(integer(v, 0, UINT64_MAX)));
    } else {
      std::int64_t i = integer(v, int_min(t), static_cast<std::uint64_t>(int_max(t)));
      c = scalar_const(t, int_scalar(i));
    }
    return type.lanes == 1 ? c : build(Op::Splat, type, std::span<const Ref>(&c, 1), {}, where);
  }

  double real(const Value& v, DType t) {
    if (v.digits == "inf") return std::numeric_limits<double>::infinity();
    if (v.digits == "nan") return std::numeric_limits<double>::quiet_NaN();
    const char *first = v.digits.data(), *last = first + v.digits.size();
    // Through the type itself: a decimal rounded to double and then to float could end beside the nearest
    // float.
    double d = 0;
    std::errc error;
    if (t == f64 || t == DType::WeakFloat) {
      error = std::from_chars(first, last, d).ec;
    } else {
      float f = 0;
      error = std::from_chars(first, last, f).ec;
      d = static_cast<double>(f);
    }
    if (error != std::errc() || std::isinf(round_to(t, d))) fail(first, "the number is out of range");
    return d;
  }

  // A value outside elementwise ops: numbers are weak.
  Ref settle(Value& v) {
    if (v.bare()) {
      DType t = v.kind == Value::Int     ? DType::WeakInt
                : v.kind == Value::Float ? DType::WeakFloat
                                         : DType::Bool;
      v = {.node = constant(v, {t, 1})};
    }
    return v.node;
  }
  Ref settle(Value&& v) { return settle(v); }

  // Operands of one type: bare literals take it from the first operand that is no literal, else from a typed
  // one.
  void agree(Op op, Values& values, const char* where) {
    std::size_t first =
        text::literals_take_type(op) ? static_cast<std::size_t>(text::first_value(op)) : values.size();
    const Value* fellow = nullptr;
    for (Value::Kind wanted : {Value::Made, Value::Typed})
      for (std::size_t k = first; k < values.size() && !fellow; ++k)
        if (values[k].kind == wanted) fellow = &values[k];
    for (std::size_t k = 0; k < values.size(); ++k) {
      Value& v = values[k];
      if (!v.bare() || k < first || !fellow) {
        settle(v);
        continue;
      }
      Type t = text::type_of(fellow->node);
      if (v.kind == Value::Bool && t.dtype != DType::Bool) t = {DType::Bool, 1};
      if (t.dtype == DType::Void) fail(where, "a number beside something without a type");
      v.node = constant(v, t);
      v.kind = Value::Typed;
    }
  }

  // --- nodes ---

  Ref elementwise(Op op, const Values& values, const char* where) {
    absl::InlinedVector<Ref, 3> srcs;
    for (const Value& v : values) srcs.push_back(v.node);
    Type type;
    text::implied_type(op, srcs, type);
    return build(op, type, srcs, {}, where);
  }

  Ref build(Op op, Type type, std::span<const Ref> srcs, Arg arg, const char* where) {
    if (!options_.canonical) return intern(op, type.dtype, type.lanes, srcs, arg);
    try {
      return make(op, type.dtype, type.lanes, srcs, arg);
    } catch (const InternalError& e) {
      fail(where, e.what());
    }
  }

  Ref call() {
    const char* where = at_;
    std::string_view op_name = word();
    auto it = ops_by_name().find(op_name);
    if (it == ops_by_name().end()) fail(where, "there is no op named \"" + std::string(op_name) + '"');
    Op op = it->second;
    const OpInfo& row = info(op);
    Type type;
    bool has_type = false;
    if (at_ != end_ && *at_ == '.') {
      ++at_;
      type = this->type();
      has_type = true;
    }
    Arg arg;
    bool has_arg = at_ != end_ && *at_ == '[';
    if (has_arg)
      arg = argument(row.arg);
    else if (row.arg != ArgKind::None && row.arg != ArgKind::Object && !(op == Op::Shape))
      fail(at_, op_name_of(op) + " needs an argument in [ ]");

    Values values;
    if (at_ != end_ && *at_ == '(') {
      ++at_;
      Nest nest(*this);
      while (!peek(')')) {
        values.push_back(expression(0));
        if (!take(',')) break;
      }
      expect(')');
    }
    int nsrc = static_cast<int>(values.size());
    if (row.nsrc >= 0 && nsrc != row.nsrc)
      fail(where,
           op_name_of(op) + " takes " + std::to_string(row.nsrc) + " sources, not " + std::to_string(nsrc));
    agree(op, values, where);
    absl::InlinedVector<Ref, 8> srcs;
    for (const Value& v : values) srcs.push_back(v.node);
    unsigned shapes = shape_sources(op);
    for (int k = 0; shapes >> k; ++k)
      if ((shapes >> k & 1) && (k >= nsrc || !srcs[static_cast<std::size_t>(k)].is(Op::Shape)))
        fail(where, "source " + std::to_string(k) + " of " + op_name_of(op) + " must be a shape");
    if (!has_type && !text::implied_type(op, srcs, type))
      fail(where, op_name_of(op) + " needs a type: " + op_name_of(op) + ".f32");
    if (op == Op::Shape && !has_arg && srcs.empty()) arg.p = ints_payload({});
    return build(op, type, srcs, arg, where);
  }
  static std::string op_name_of(Op op) { return std::string(info(op).name); }

  Arg argument(ArgKind kind) {
    const char* where = at_++;
    Nest nest(*this);
    Arg arg;
    if (kind != ArgKind::Object) skip();  // whose text may begin with #
    switch (kind) {
      case ArgKind::None:
      case ArgKind::Int:
      case ArgKind::Value:
        arg.i = plain_int();
        break;
      case ArgKind::Range: {
        std::int64_t id = plain_int(), range_kind = -1;
        expect(',');
        skip();
        if (at_ != end_ && is_digit(*at_)) {
          range_kind = plain_int();
        } else {
          const char* start = at_;
          std::string_view w = word();
          for (int k = 0; k <= static_cast<int>(RangeKind::Lane); ++k)
            if (name(static_cast<RangeKind>(k)) == w) range_kind = k;
          if (range_kind < 0) fail(start, "expected a kind of range, such as loop or reduce");
        }
        if (range_kind < 0 || range_kind > 255 || id < -(std::int64_t{1} << 55) ||
            id >= std::int64_t{1} << 55)
          fail(where, "the range's id or kind is out of range");
        arg.i = static_cast<std::int64_t>(static_cast<std::uint64_t>(id) << 8 |
                                          static_cast<std::uint64_t>(range_kind));
        break;
      }
      case ArgKind::Reduce: {
        std::uint64_t op = 0, axes = 0;
        if (at_ != end_ && is_digit(*at_)) {
          op = static_cast<std::uint64_t>(plain_int());
        } else {
          const char* start = at_;
          auto it = ops_by_name().find(word());
          if (it == ops_by_name().end()) fail(start, "expected the op of a reduction");
          op = static_cast<std::uint64_t>(it->second);
        }
        if (take(';')) {
          skip();
          std::int64_t number = plain_int();
          if (number < 0 || number >> 56) fail(where, "the number is out of range");
          axes = static_cast<std::uint64_t>(number);
        }
        while (take(',')) {
          skip();
          std::int64_t axis = plain_int();
          if (axis < 0 || axis > 55) fail(where, "an axis is out of range");
          axes |= std::uint64_t{1} << axis;
        }
        if (op > 255) fail(where, "the op of a reduction is out of range");
        arg.i = static_cast<std::int64_t>(axes << 8 | op);
        break;
      }
      case ArgKind::Ints: {
        absl::InlinedVector<std::int64_t, 8> values;
        while (!peek(']')) {
          values.push_back(plain_int());
          if (!take(',')) break;
          skip();
        }
        arg.p = ints_payload(values);
        break;
      }
      case ArgKind::Str:
        arg.p = str_payload(string());
        break;
      case ArgKind::Object:
        arg.p = object(where);
        break;
    }
    expect(']');
    return arg;
  }

  std::int64_t plain_int() {
    const char* start = at_;
    bool negative = at_ != end_ && *at_ == '-', hex = false;
    if (negative) ++at_;
    if (end_ - at_ > 2 && at_[0] == '0' && at_[1] == 'x') {
      hex = true;
      at_ += 2;
    }
    std::uint64_t u = 0;
    auto [p, error] = std::from_chars(at_, end_, u, hex ? 16 : 10);
    if (error == std::errc::invalid_argument) fail(start, "expected an integer");
    std::uint64_t most = hex ? UINT64_MAX : static_cast<std::uint64_t>(INT64_MAX) + negative;
    if (error != std::errc() || u > most) fail(start, "the number is out of range");
    at_ = p;
    return static_cast<std::int64_t>(negative ? 0 - u : u);
  }

  std::string string() {
    const char* start = at_;
    if (!take('"')) fail(start, "expected a string in quotes");
    std::string out;
    while (at_ != end_ && *at_ != '"' && *at_ != '\n') {
      if (*at_ != '\\') {
        out += *at_++;
        continue;
      }
      if (end_ - at_ < 2) break;
      char c = at_[1];
      at_ += 2;
      if (c == 'n') {
        out += '\n';
      } else if (c == 'x') {
        unsigned code = 0;
        if (end_ - at_ < 2 || std::from_chars(at_, at_ + 2, code, 16).ptr != at_ + 2)
          fail(at_, "expected two hexadecimal digits");
        out += static_cast<char>(code);
        at_ += 2;
      } else if (c == '"' || c == '\\') {
        out += c;
      } else {
        fail(at_ - 2, "unknown escape in a string");
      }
    }
    if (at_ == end_ || *at_ != '"') fail(start, "the string does not end on its line");
    ++at_;
    return out;
  }

  Payload* object(const char* where) {
    std::string_view rest(at_, static_cast<std::size_t>(end_ - at_));
    std::size_t length = text::object_length(rest);
    if (length == std::string_view::npos || length == rest.size())
      fail(where, "the brackets of the argument do not close");
    const char* start = at_;
    std::string_view whole = rest.substr(0, length);
    std::size_t brace = whole.find('{');
    std::string_view tag = whole.substr(0, brace);
    ObjectParser parser = nullptr;
    if (brace != std::string_view::npos && whole.back() == '}') {
      std::lock_guard lock(object_parsers().mutex);
      auto it = object_parsers().by_tag.find(tag);
      if (it != object_parsers().by_tag.end()) parser = it->second;
    }
    if (!parser)
      fail(start, "an argument like " + std::string(whole.substr(0, 40)) +
                      " cannot be read from text: it stands for something of this process, or no reader is "
                      "registered for it");
    Payload* payload = nullptr;
    try {
      payload = parser(whole.substr(brace + 1, length - brace - 2));
    } catch (const Error& e) {
      fail(start, e.what());
    }
    while (at_ != start + length) advance();
    return object_payload(payload);
  }

  const char *at_, *end_, *line_start_, *begin_ = at_;
  int line_, nesting_ = 0;
  const ParseOptions& options_;
  absl::flat_hash_map<std::string_view, Ref> names_;
};

}  // namespace

Ref parse(std::string_view text, const ParseOptions& options) { return Parser(text, options).run(); }

void register_object(std::string_view tag, ObjectParser parser) {
  std::lock_guard lock(object_parsers().mutex);
  object_parsers().by_tag.insert_or_assign(std::string(tag), parser);
}

}  // namespace pg
