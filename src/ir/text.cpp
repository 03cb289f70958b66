#include "ir/text.h"

namespace pg::text {

bool implied_type(Op op, std::span<const Ref> srcs, Type& type) {
  switch (op) {
    case Op::Shape:
    case Op::Device:
    case Op::Sink:
    case Op::Store:
    case Op::End:
    case Op::If:
    case Op::EndIf:
    case Op::Barrier:
    case Op::Linear:
    case Op::Call:
    case Op::Tuple:
      type = {};
      return true;
    case Op::Const:
    case Op::Buffer:
    case Op::Param:
    case Op::Arange:
    case Op::Local:
    case Op::Iota:
    case Op::Splat:
    case Op::Cast:
    case Op::Bitcast:
      return false;
    default:
      break;
  }
  if (srcs.empty()) return false;
  type = type_of(srcs[0]);
  if (info(op).flags & kComparison) type.dtype = DType::Bool;
  switch (op) {
    case Op::Where:
      type = type_of(srcs[1]);
      break;
    case Op::Wmma:
      type = type_of(srcs[2]);
      break;
    case Op::Index:
      if (srcs.size() > 1) type.lanes = srcs[1].lanes();
      break;
    case Op::Extract:
      type.lanes = 1;
      break;
    case Op::Reduce:
      if (srcs.size() == 1) type.lanes = 1;
      break;
    default:
      break;
  }
  return true;
}

std::string name(Type type) {
  std::string s(pg::name(type.dtype));
  if (type.lanes != 1) s += 'x' + std::to_string(type.lanes);
  return s;
}

std::size_t object_length(std::string_view s) {
  std::string open;
  for (std::size_t i = 0; i < s.size(); ++i) {
    char c = s[i];
    if (c == '"') {
      for (++i; i < s.size() && s[i] != '"'; ++i)
        if (s[i] == '\\') ++i;
      if (i >= s.size()) return std::string_view::npos;
    } else if (c == '(' || c == '[' || c == '{') {
      open += c == '(' ? ')' : c == '[' ? ']' : '}';
    } else if (c == ')' || c == ']' || c == '}') {
      if (open.empty()) return c == ']' ? i : std::string_view::npos;
      if (open.back() != c) return std::string_view::npos;
      open.pop_back();
    }
  }
  return open.empty() ? s.size() : std::string_view::npos;
}

}  // namespace pg::text
