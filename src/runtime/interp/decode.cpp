#include <absl/container/flat_hash_map.h>
#include <fmt/format.h>

#include "ir/build.h"
#include "ir/wmma.h"
#include "runtime/interp/code.h"

namespace pg::runtime::interp {
namespace {

Ref strip_after(Ref x) {
  while (x.is(Op::After)) x = x.src(0);
  return x;
}

std::uint64_t word_of(DType t, Scalar v) {
  return is_float(t) ? to_bits(t, v) : static_cast<std::uint64_t>(v.i);
}

class Decoder {
 public:
  Decoder(Ref linear, std::string name) {
    code_.name = std::move(name);
    code_.linear = linear;
  }

  Code decode() {
    int at = 0;
    for (Node* n : code_.linear.ref().srcs()) instruction(n, at++);
    if (!loops_.empty() || !ifs_.empty()) fail("a loop or an If is not closed");
    for (const BufferUse& use : code_.buffers)
      if (use.local) code_.local_bytes += use.bytes;
    return std::move(code_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) {
    throw InternalError(fmt::format("[interp] {}: {}", code_.name, what));
  }

  Instruction& add(Step step, Ref n, int at) {
    Instruction& i = code_.instructions.emplace_back();
    i.step = step;
    i.at = at;
    i.lanes = static_cast<std::uint16_t>(n.lanes());
    i.to = n.dtype();
    return i;
  }

  std::int32_t reserve(Ref n) {
    auto word = static_cast<std::int32_t>(code_.frame.size());
    code_.frame.resize(code_.frame.size() + static_cast<std::size_t>(n.lanes()));
    return words_[n.node()] = word;
  }

  // The words of a value. Leaves are made at their first use, all others stand before.
  std::int32_t value(Ref n) {
    n = strip_after(n);
    if (auto it = words_.find(n.node()); it != words_.end()) return it->second;
    Ref c = n.is(Op::Splat) ? n.src(0) : n;
    if (c.is_const()) {
      std::int32_t word = reserve(n);
      for (int l = 0; l < n.lanes(); ++l) word_at(word + l) = word_of(c.dtype(), c->arg);
      return word;
    }
    if (n.is(Op::Iota)) {
      std::int32_t word = reserve(n);
      for (int l = 0; l < n.lanes(); ++l)
        word_at(word + l) = word_of(n.dtype(), is_float(n.dtype()) ? float_scalar(l) : int_scalar(l));
      return word;
    }
    if (n.is(Op::ScalarParam)) {
      auto slot = static_cast<std::int32_t>(n.i());
      code_.scalar_slots = std::max(code_.scalar_slots, slot + 1);
      code_.arguments.push_back({Argument::Scalar, slot, reserve(n), n.dtype()});
      return words_.at(n.node());
    }
    if (n.is(Op::Special)) {
      std::string_view what = n.str();
      Argument argument{Argument::Thread, 0, reserve(n), n.dtype()};
      if (what != "thread") {
        if (what.size() != 5 || what[4] < '0' || what[4] > '2' ||
            !(what.starts_with("gidx") || what.starts_with("lidx")))
          fail("there is no Special named " + n.str());
        argument.kind = what[0] == 'g' ? Argument::Group : Argument::Local;
        argument.index = what[4] - '0';
      }
      code_.arguments.push_back(argument);
      return argument.word;
    }
    fail(fmt::format("{} is used before it stands", info(n.op()).name));
  }
  std::uint64_t& word_at(std::int32_t w) { return code_.frame[static_cast<std::size_t>(w)]; }

  std::int32_t buffer(Ref n) {
    while (n.is(Op::After) || n.is(Op::Index)) n = n.src(0);
    if (!n.is(Op::Param) && !n.is(Op::Local)) fail(fmt::format("an Index into {}", info(n.op()).name));
    BufferUse use{n.is(Op::Local), n.i(), 0};
    for (std::size_t k = 0; k < code_.buffers.size(); ++k)
      if (code_.buffers[k].local == use.local && code_.buffers[k].slot == use.slot)
        return static_cast<std::int32_t>(k);
    if (use.local) {
      if (!is_concrete(n.src(0))) fail("the size of a Local is not a constant");
      use.bytes = numel(n.src(0)) * static_cast<std::int64_t>(itemsize(n.dtype()));
    } else {
      code_.buffer_slots = std::max(code_.buffer_slots, static_cast<int>(n.i()) + 1);
    }
    code_.buffers.push_back(use);
    return static_cast<std::int32_t>(code_.buffers.size()) - 1;
  }

  // Fills in where an access goes; `lanes` are those of the value.
  void access(Instruction& i, Ref index, int lanes) {
    Ref offset = strip_after(index.src(1));
    i.buffer = buffer(index);
    i.offset = value(offset);
    i.scattered = offset.lanes() > 1;
    if (i.scattered && offset.lanes() != lanes) fail("lanes of an offset and its value differ");
    if (index.nsrc() < 3) return;
    Ref gate = strip_after(index.src(2));
    i.gate = value(gate);
    i.wide_gate = gate.lanes() > 1;
    if (i.wide_gate && gate.lanes() != lanes) fail("lanes of a gate and its value differ");
  }

  void instruction(Ref n, int at) {
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
        std::int32_t extent = value(n.src(0)), variable = reserve(n);
        Instruction& i = add(Step::Begin, n, at);
        i.src[0] = extent;
        i.dst = variable;
        loops_.push_back(static_cast<std::int32_t>(code_.instructions.size()) - 1);
        return;
      }
      case Op::End:
        for (Node* s : n.srcs()) {
          if (s->op != Op::Range) continue;
          if (loops_.empty()) fail("End without a loop");
          std::int32_t begin = loops_.back();
          loops_.pop_back();
          add(Step::End, n, at).target = begin;
          code_.instructions[static_cast<std::size_t>(begin)].target =
              static_cast<std::int32_t>(code_.instructions.size());
        }
        return;
      case Op::If: {
        std::int32_t gate = value(n.src(0));
        add(Step::If, n, at).gate = gate;
        ifs_.push_back(static_cast<std::int32_t>(code_.instructions.size()) - 1);
        return;
      }
      case Op::EndIf:
        if (ifs_.empty()) fail("EndIf without If");
        code_.instructions[static_cast<std::size_t>(ifs_.back())].target =
            static_cast<std::int32_t>(code_.instructions.size());
        ifs_.pop_back();
        return;
      case Op::Barrier:
        add(Step::Barrier, n, at);
        return;
      case Op::Acc:
        return move(n, n, n.src(0), at);
      case Op::Load: {
        Ref from = strip_after(n.src(0));
        if (from.is(Op::Acc)) return move(n, n, from, at);
        if (!from.is(Op::Index)) fail(fmt::format("a Load of {}", info(from.op()).name));
        std::int32_t other = n.nsrc() > 1 ? value(n.src(1)) : -1;
        Instruction i;
        access(i, from, n.lanes());
        Instruction& load = add(Step::Load, n, at);
        keep(load, i);
        load.src[0] = other;
        load.dst = reserve(n);
        return;
      }
      case Op::Store: {
        Ref to = strip_after(n.src(0)), x = n.src(1);
        if (to.is(Op::Acc)) return move(nullptr, to, x, at);
        if (!to.is(Op::Index)) fail(fmt::format("a Store to {}", info(to.op()).name));
        Instruction i;
        access(i, to, x.lanes());
        std::int32_t from = value(x);
        Instruction& store = add(Step::Store, x, at);
        keep(store, i);
        store.src[0] = from;
        return;
      }
      case Op::Splat: {
        if (n.src(0).is_const()) return;
        std::int32_t x = value(n.src(0));
        Instruction& i = add(Step::Splat, n, at);
        i.src[0] = x;
        i.dst = reserve(n);
        return;
      }
      case Op::Extract: {
        std::int32_t x = value(n.src(0));
        Instruction& i = add(Step::Move, n, at);
        i.src[0] = x + static_cast<std::int32_t>(n.i());
        i.dst = reserve(n);
        return;
      }
      case Op::Reduce: {
        if (n.nsrc() > 1) fail("a Reduce over ranges");
        std::int32_t x = value(n.src(0));
        Instruction& i = add(Step::Reduce, n, at);
        i.op = n.reduce_op();
        i.from = n.dtype();
        i.lanes = static_cast<std::uint16_t>(n.src(0).lanes());
        i.src[0] = x;
        i.dst = reserve(n);
        return;
      }
      case Op::Wmma:
        return wmma(n, at);
      default:
        break;
    }
    if (!n.has(kElementwise)) fail(fmt::format("{} cannot be run", info(n.op()).name));
    alu(n, at);
  }

  static void keep(Instruction& to, const Instruction& from) {
    to.buffer = from.buffer;
    to.offset = from.offset;
    to.scattered = from.scattered;
    to.gate = from.gate;
    to.wide_gate = from.wide_gate;
  }

  // Of a whole value; `made` is the node that becomes known, `to` the one whose words are written.
  void move(Ref made, Ref to, Ref from, int at) {
    std::int32_t x = value(from);
    Instruction& i = add(Step::Move, to, at);
    i.src[0] = x;
    i.dst = made ? reserve(made) : value(to);
  }

  void alu(Ref n, int at) {
    std::int32_t operands[3] = {-1, -1, -1};
    for (int k = 0; k < n.nsrc(); ++k) {
      if (n.src(k).lanes() != n.lanes())
        fail(fmt::format("{} of {} and {} lanes", info(n.op()).name, n.lanes(), n.src(k).lanes()));
      operands[k] = value(n.src(k));
    }
    Instruction& i = add(n.is(Op::Where)     ? Step::Where
                         : n.is(Op::Bitcast) ? Step::Bitcast
                                             : Step::Alu,
                         n, at);
    i.op = n.op();
    i.from = n.src(n.is(Op::Where) ? 1 : 0).dtype();
    std::copy(operands, operands + 3, i.src);
    if (i.step == Step::Alu && !is_exact(n.op()))
      fail(fmt::format("{} should have been decomposed", info(n.op()).name));
    if (i.step == Step::Bitcast && itemsize(i.from) != itemsize(i.to)) fail("Bitcast between sizes");
    i.dst = reserve(n);
  }

  void wmma(Ref n, int at) {
    std::int32_t a = value(n.src(0)), b = value(n.src(1)), c = value(n.src(2));
    Instruction& i = add(Step::Wmma, n, at);
    i.core = n.object<WmmaShape>().core;
    i.src[0] = a, i.src[1] = b, i.src[2] = c;
    i.dst = reserve(n);
    int held = i.core.m * i.core.n / n.lanes();  // by as many items
    if (n.src(0).lanes() * held != i.core.m * i.core.k || n.src(1).lanes() * held != i.core.k * i.core.n ||
        n.src(2).lanes() != n.lanes())
      fail("lanes of a Wmma do not fit its matrices");
  }

  Code code_;
  absl::flat_hash_map<const Node*, std::int32_t> words_;
  std::vector<std::int32_t> loops_, ifs_;
};

}  // namespace

Code decode(Ref linear, std::string name) { return Decoder(linear, std::move(name)).decode(); }

}  // namespace pg::runtime::interp
