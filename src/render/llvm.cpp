// A linear program as LLVM IR text: loops, memory and accumulators. It is in static single assignment from
// the start (accumulators are phis of the loops that change them), so LLVM has nothing to promote; loops are
// rotated and marked so that LLVM leaves their shape alone.
#include <algorithm>

#include <absl/container/flat_hash_map.h>

#include "ir/build.h"
#include "render/llvm_writer.h"
#include "render/program.h"

namespace pg {
namespace {

using render::LlvmWriter;
using render::Operand;
using render::Shape;

// A loop of the program: what the scan finds, and the state while it is open.
struct Loop {
  Ref range;
  int id = 0;
  std::vector<Ref> accs;  // from outside, changed within
  bool may_skip = false;
  std::string variable, extent, before;  // label before the loop
  std::vector<std::string> entered;      // values of accs before it
  std::vector<std::size_t> open;         // pieces to be filled with their values at the end of a turn
  std::size_t scoped = 0;                // addresses that are known outside
};

class LlvmRenderer {
 public:
  LlvmRenderer(Ref linear, const ProgramInfo& program, const Target& target)
      : linear_(linear), program_(program), target_(target), w_(target) {}

  std::string render() {
    scan();
    for (Node* n : linear_.srcs()) instruction(n);
    if (!open_.empty()) throw InternalError("[llvm] a loop is not closed in " + program_.name);
    return assemble();
  }

 private:
  // Which accumulators each loop changes, and which buffers are written.
  void scan() {
    absl::flat_hash_map<const Node*, std::size_t> depth;  // at which an Acc stands
    std::vector<std::size_t> stack;
    for (Node* node : linear_.srcs()) {
      Ref n = node;
      if (n.is(Op::Acc)) depth[node] = stack.size();
      if (n.is(Op::Range)) {
        stack.push_back(loops_.size());
        loops_.push_back({.range = n, .id = static_cast<int>(loops_.size()) + 1});
      }
      if (n.is(Op::End))
        for (Node* s : n.srcs())
          if (s->op == Op::Range && !stack.empty()) stack.pop_back();
      if (!n.is(Op::Store)) continue;
      Ref target = strip_after(n.src(0));
      if (!target.is(Op::Acc)) {
        written_.push_back(buffer_of(target));
        continue;
      }
      auto at = depth.find(target.node());
      if (at == depth.end()) throw InternalError("[llvm] a Store to an Acc that does not stand before it");
      for (std::size_t i = at->second; i < stack.size(); ++i) {
        auto& accs = loops_[stack[i]].accs;
        if (std::none_of(accs.begin(), accs.end(), [&](Ref a) { return a.is(target); }))
          accs.push_back(target);
      }
    }
    for (const ScratchPart& part : scratch_layout(linear_)) scratch_[part.local.node()] = part.offset;
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
        return;  // written where they are used
      case Op::Range:
        return begin(n);
      case Op::End:
        return end(n);
      case Op::Acc:
        state_[n.node()] = value(n.src(0));
        return;
      case Op::Load:
        return load(n);
      case Op::Store:
        return store(n);
      case Op::Splat:
        known_[n.node()] = constant_of(n) ? value(n) : w_.splat(shape(n), value(n.src(0)));
        return;
      case Op::Extract:
        known_[n.node()] = w_.slice(shape(n.src(0)), value(n.src(0)), static_cast<int>(n.i()), 1);
        return;
      case Op::Reduce:
        return reduce(n);
      default:
        break;
    }
    if (!n.has(kElementwise))
      throw InternalError(fmt::format("[llvm] {} in {}", info(n.op()).name, program_.name));
    std::vector<Operand> operands;
    for (Node* s : n.srcs()) {
      if (s->lanes != n.lanes())
        throw InternalError(
            fmt::format("[llvm] {} of {} and {} lanes", info(n.op()).name, n.lanes(), s->lanes));
      operands.push_back({value(s), strip_after(s)});
    }
    DType from = n.src(n.is(Op::Where) ? 1 : 0).dtype();
    known_[n.node()] = w_.alu(n.op(), shape(n), from, operands, n);
  }

  // --- values ------------------------------------------------------------------------------------

  static Shape shape(Ref n) { return {n.dtype(), n.lanes()}; }
  static Ref constant_of(Ref n) {
    if (n.is(Op::Splat)) n = n.src(0);
    return n.is_const() ? n : nullptr;
  }

  std::string value(Ref n) {
    n = strip_after(n);
    if (auto it = known_.find(n.node()); it != known_.end()) return it->second;
    if (Ref c = constant_of(n)) return w_.constant(shape(n), c->arg);
    std::string text;
    switch (n.op()) {
      case Op::Iota: {
        for (int i = 0; i < n.lanes(); ++i)
          text += fmt::format("{}{} {}", i ? ", " : "", w_.type({n.dtype(), 1}),
                              w_.constant({n.dtype(), 1}, int_scalar(i)));
        if (n.lanes() > 1)
          text = "<" + text + ">";
        else
          text = w_.constant(shape(n), int_scalar(0));
        break;
      }
      case Op::Special:
        if (n.str() != "thread")
          throw InternalError("[llvm] Special " + n.str() + " on a device without groups");
        text = in_entry([&] { return from_i64("%thread", n.dtype()); });
        break;
      case Op::ScalarParam:
        text = in_entry([&] {
          std::string at = w_.emit("getelementptr i64, ptr %vars, i64 {}", n.i());
          return from_i64(w_.emit("load i64, ptr {}, align 8", at), n.dtype());
        });
        break;
      default:
        throw InternalError(
            fmt::format("[llvm] {} is used in {} before it stands", info(n.op()).name, program_.name));
    }
    return known_[n.node()] = text;
  }

  // What `write` writes goes to the entry block.
  template <class F>
  std::string in_entry(F&& write) {
    bool before = w_.in_entry;
    w_.in_entry = true;
    std::string text = write();
    w_.in_entry = before;
    return text;
  }

  // An argument of 64 bits as an integer of dtype t.
  std::string from_i64(const std::string& x, DType t) {
    return itemsize(t) == 8 ? x : w_.emit("trunc i64 {} to {}", x, w_.type({t, 1}));
  }

  // --- loops -------------------------------------------------------------------------------------

  void begin(Ref range) {
    Loop& loop = loops_[begun_];
    open_.push_back(begun_++);
    Ref extent = range.src(0);
    std::string t = w_.type(shape(range));
    loop.extent = extent.is_const() ? w_.constant(shape(range), extent->arg) : value(extent);
    loop.may_skip = extent.lo() < 1;
    loop.before = label_;
    if (loop.may_skip) {
      std::string any = w_.emit("icmp sgt {} {}, 0", t, loop.extent);
      w_.line("  br i1 {}, label %loop{}, label %done{}", any, loop.id, loop.id);
    } else {
      w_.line("  br label %loop{}", loop.id);
    }
    label(fmt::format("loop{}", loop.id));
    loop.variable = fmt::format("%i{}", loop.id);
    w_.line("  {} = phi {} [ 0, %{} ], [ {}.next, %turn{} ]", loop.variable, t, loop.before, loop.variable,
            loop.id);
    known_[range.node()] = loop.variable;
    for (Ref acc : loop.accs) {
      std::string& now = state_.at(acc.node());
      loop.entered.push_back(now);
      std::string name = fmt::format("%a{}.{}", loop.id, loop.entered.size());
      w_.out() += fmt::format("  {} = phi {} [ {}, %{} ], [ ", name, w_.type(shape(acc)), now, loop.before);
      loop.open.push_back(w_.pieces.size());
      w_.pieces.emplace_back();  // the value at the end of a turn
      w_.pieces.push_back(fmt::format(", %turn{} ]\n", loop.id));
      now = name;
    }
    loop.scoped = scoped_.size();
  }

  void end(Ref n) {
    for (int closing = 0; closing < n.nsrc(); ++closing) {
      if (!n.src(closing).is(Op::Range)) continue;
      if (open_.empty()) throw InternalError("[llvm] End without a loop in " + program_.name);
      close();
    }
  }

  void close() {
    Loop& loop = loops_[open_.back()];
    open_.pop_back();
    std::string t = w_.type(shape(loop.range));
    w_.line("  br label %turn{}", loop.id);
    label(fmt::format("turn{}", loop.id));
    w_.line("  {}.next = add nuw nsw {} {}, 1", loop.variable, t, loop.variable);
    std::string more = w_.emit("icmp slt {} {}.next, {}", t, loop.variable, loop.extent);
    w_.line("  br i1 {}, label %loop{}, label %done{}, !llvm.loop !{}", more, loop.id, loop.id,
            kLoopMetadata + loop.id);
    label(fmt::format("done{}", loop.id));
    for (std::size_t i = 0; i < loop.accs.size(); ++i) {
      std::string& now = state_.at(loop.accs[i].node());
      w_.pieces[loop.open[i]] = now;
      if (loop.may_skip)
        now = w_.emit("phi {} [ {}, %{} ], [ {}, %turn{} ]", w_.type(shape(loop.accs[i])), loop.entered[i],
                      loop.before, now, loop.id);
    }
    for (; scoped_.size() > loop.scoped; scoped_.pop_back()) addresses_.erase(scoped_.back());
  }

  void label(std::string name) {
    w_.line("{}:", name);
    label_ = std::move(name);
  }

  // --- memory ------------------------------------------------------------------------------------

  struct Access {
    Shape value;
    std::string type;     // in memory
    std::string address;  // or a vector of them
    Ref gate;             // null: always on
    bool scattered;
    std::string suffix;  // alignment and aliasing
    std::string metadata;
  };

  std::string base_of(Ref buffer) {
    if (auto it = known_.find(buffer.node()); it != known_.end()) return it->second;
    std::string text;
    if (buffer.is(Op::Param)) {
      text = in_entry([&] {
        std::string at = w_.emit("getelementptr ptr, ptr %buffers, i64 {}", buffer.i());
        return w_.emit("load ptr, ptr {}, align 8", at);
      });
    } else if (buffer.is(Op::Local)) {
      text = in_entry(
          [&] { return w_.emit("getelementptr i8, ptr %scratch, i64 {}", scratch_.at(buffer.node())); });
    } else {
      throw InternalError(fmt::format("[llvm] Index into {} in {}", info(buffer.op()).name, program_.name));
    }
    return known_[buffer.node()] = text;
  }

  Access access(Ref index, Shape value) {
    index = strip_after(index);
    if (!index.is(Op::Index)) throw InternalError(fmt::format("[llvm] access to {}", info(index.op()).name));
    Ref buffer = buffer_of(index), offset = strip_after(index.src(1));
    Access a{.value = value,
             .type = w_.type(value, true),
             .address = {},
             .gate = nullptr,
             .scattered = offset.lanes() > 1,
             .suffix = {},
             .metadata = {}};
    if (a.scattered && offset.lanes() != value.lanes)
      throw InternalError("[llvm] lanes of an offset and its value differ");
    if (index.nsrc() > 2) {
      a.gate = strip_after(index.src(2));
      if (a.gate.is(Op::Splat)) a.gate = strip_after(a.gate.src(0));
      if (a.gate.lanes() != 1 && a.gate.lanes() != value.lanes)
        throw InternalError("[llvm] lanes of a gate and its value differ");
      if (a.gate.is_const(1)) a.gate = nullptr;
    }
    if (program_.distinct) a.metadata = alias_metadata(buffer);
    a.suffix = fmt::format(", align {}{}", itemsize(value.dtype), a.metadata);
    auto it = addresses_.find(index.node());
    if (it == addresses_.end()) {
      std::string base = base_of(buffer), element = w_.type({value.dtype, 1}, true);
      std::string by = this->value(offset), t = w_.type(shape(offset));
      if (is_unsigned(offset.dtype()) && itemsize(offset.dtype()) < 8) {
        by = w_.emit("zext {} {} to {}", t, by, w_.type({i64, offset.lanes()}));
        t = w_.type({i64, offset.lanes()});
      }
      // What is off may be out of bounds.
      std::string text =
          w_.emit("getelementptr {}{}, ptr {}, {} {}", a.gate ? "" : "inbounds ", element, base, t, by);
      it = addresses_.emplace(index.node(), text).first;
      scoped_.push_back(index.node());
    }
    a.address = it->second;
    return a;
  }

  // The gate as a mask of the access's lanes.
  std::string mask_of(const Access& a) {
    Shape s{boolean, a.value.lanes};
    if (!a.gate) return w_.integer(s, 1);
    std::string gate = value(a.gate);
    return a.gate.lanes() > 1 ? gate : w_.splat(s, gate);
  }

  std::string to_memory(Shape s, const std::string& x) {
    return s.dtype == DType::Bool ? w_.emit("zext {} {} to {}", w_.type(s), x, w_.type(s, true)) : x;
  }
  std::string from_memory(Shape s, const std::string& x) {
    return s.dtype == DType::Bool
               ? w_.emit("icmp ne {} {}, {}", w_.type(s, true), x, w_.integer({u8, s.lanes}, 0))
               : x;
  }

  void load(Ref n) {
    Ref from = strip_after(n.src(0));
    if (from.is(Op::Acc)) {
      known_[n.node()] = state_.at(from.node());
      return;
    }
    Access a = access(from, shape(n));
    Ref other = n.nsrc() > 1 ? n.src(1) : nullptr;
    if (!a.gate && !a.scattered) {
      std::string x = w_.emit("load {}, ptr {}{}{}", a.type, a.address, a.suffix, invariant(from));
      known_[n.node()] = from_memory(a.value, x);
      return;
    }
    std::string alternative =
        other ? value(other) : w_.constant(a.value, is_float(n.dtype()) ? float_scalar(0) : int_scalar(0));
    if (a.value.lanes == 1) {
      // Off, it reads zeros of our own instead: no branch to mispredict.
      std::string safe = zeros();
      std::string address = w_.emit("select i1 {}, ptr {}, ptr {}", value(a.gate), a.address, safe);
      std::string x =
          from_memory(a.value, w_.emit("load {}, ptr {}, align {}", a.type, address, itemsize(n.dtype())));
      bool zero = !other || (constant_of(other) && to_bits(n.dtype(), constant_of(other)->arg) == 0);
      known_[n.node()] = zero ? x : w_.select(a.value, value(a.gate), x, alternative);
      return;
    }
    int align = static_cast<int>(itemsize(n.dtype()));
    std::string m = w_.intrinsic_type(a.value, true), mask_type = w_.type({boolean, a.value.lanes});
    std::string result;
    if (a.scattered) {
      std::string mask = mask_of(a), through = to_memory(a.value, alternative);
      result =
          w_.emit("call {0} @llvm.masked.gather.{1}.v{2}p0(<{2} x ptr> {3}, i32 {4}, {5} {6}, {0} {7}){8}",
                  a.type, m, a.value.lanes, a.address, align, mask_type, mask, through, a.metadata);
    } else if (a.gate.lanes() > 1 || target_.masks(n.dtype())) {
      std::string mask = mask_of(a), through = to_memory(a.value, alternative);
      result = w_.emit("call {0} @llvm.masked.load.{1}.p0(ptr {2}, i32 {3}, {4} {5}, {0} {6}){7}", a.type, m,
                       a.address, align, mask_type, mask, through, a.metadata);
    } else {
      std::string through = to_memory(a.value, alternative), before = label_;
      int id = branch(value(a.gate));
      std::string x = w_.emit("load {}, ptr {}{}", a.type, a.address, a.suffix);
      join(id);
      result = w_.emit("phi {} [ {}, %on{} ], [ {}, %{} ]", a.type, x, id, through, before);
    }
    known_[n.node()] = from_memory(a.value, result);
  }

  void store(Ref n) {
    Ref target = strip_after(n.src(0));
    if (target.is(Op::Acc)) {
      state_[target.node()] = value(n.src(1));
      return;
    }
    Access a = access(target, shape(n.src(1)));
    std::string x = to_memory(a.value, value(n.src(1)));
    if (int align = stream_alignment(n)) return stream(target, a, x, align);
    if (!a.gate && !a.scattered) {
      w_.line("  store {} {}, ptr {}{}", a.type, x, a.address, a.suffix);
      return;
    }
    int align = static_cast<int>(itemsize(a.value.dtype));
    std::string mask_type = w_.type({boolean, a.value.lanes});
    if (a.scattered) {
      w_.line("  call void @llvm.masked.scatter.{0}.v{1}p0({2} {3}, <{1} x ptr> {4}, i32 {5}, {6} {7}){8}",
              w_.intrinsic_type(a.value, true), a.value.lanes, a.type, x, a.address, align, mask_type,
              mask_of(a), a.metadata);
    } else if (a.value.lanes > 1 && (a.gate.lanes() > 1 || target_.masks(a.value.dtype))) {
      w_.line("  call void @llvm.masked.store.{0}.p0({1} {2}, ptr {3}, i32 {4}, {5} {6}){7}",
              w_.intrinsic_type(a.value, true), a.type, x, a.address, align, mask_type, mask_of(a),
              a.metadata);
    } else {
      int id = branch(value(a.gate));
      w_.line("  store {} {}, ptr {}{}", a.type, x, a.address, a.suffix);
      join(id);
    }
  }

  // Past the caches where the buffer is aligned, which only a launch knows; the branch always goes one way.
  void stream(Ref index, const Access& a, const std::string& x, int align) {
    Ref buffer = buffer_of(index);
    std::string& aligned = aligned_[{buffer.node(), align}];
    if (aligned.empty()) {
      std::string base = base_of(buffer);
      aligned = in_entry([&] {
        std::string bits = w_.emit("ptrtoint ptr {} to i64", base);
        return w_.emit("icmp eq i64 {}, 0", w_.emit("and i64 {}, {}", bits, align - 1));
      });
    }
    streams_ = true;
    int id = ++branch_count_;
    w_.line("  br i1 {}, label %on{}, label %other{}", aligned, id, id);
    label(fmt::format("on{}", id));
    w_.line("  store {} {}, ptr {}, align {}{}, !nontemporal !{}", a.type, x, a.address, align, a.metadata,
            kNontemporalMetadata);
    w_.line("  br label %off{}", id);
    label(fmt::format("other{}", id));
    w_.line("  store {} {}, ptr {}{}", a.type, x, a.address, a.suffix);
    join(id);
  }

  int branch(const std::string& gate) {
    int id = ++branch_count_;
    w_.line("  br i1 {}, label %on{}, label %off{}", gate, id, id);
    label(fmt::format("on{}", id));
    return id;
  }
  void join(int id) {
    w_.line("  br label %off{}", id);
    label(fmt::format("off{}", id));
  }

  // Memory on the stack that holds zeros, for loads that are off.
  std::string zeros() {
    if (zeros_.empty())
      zeros_ = in_entry([&] {
        std::string p = w_.emit("alloca i64, align 8");
        w_.line("  store i64 0, ptr {}, align 8", p);
        return p;
      });
    return zeros_;
  }

  // --- the rest ----------------------------------------------------------------------------------

  // By halves: lane i with lane i + n/2.
  void reduce(Ref n) {
    Ref x = n.src(0);
    if (n.nsrc() > 1) throw InternalError("[llvm] a Reduce over ranges");
    std::string v = value(x);
    for (int lanes = x.lanes(); lanes > 1; lanes /= 2) {
      Shape whole{x.dtype(), lanes}, half{x.dtype(), lanes / 2};
      std::vector<Operand> halves{{w_.slice(whole, v, 0, lanes / 2), nullptr},
                                  {w_.slice(whole, v, lanes / 2, lanes / 2), nullptr}};
      v = w_.alu(n.reduce_op(), half, x.dtype(), halves);
    }
    known_[n.node()] = v;
  }

  bool is_written(Ref buffer) const {
    for (Ref w : written_)
      if (w.op() == buffer.op() && w.i() == buffer.i()) return true;
    return false;
  }

  std::string invariant(Ref index) {
    Ref buffer = buffer_of(index);
    return program_.distinct && buffer.is(Op::Param) && !is_written(buffer) ? ", !invariant.load !0" : "";
  }

  // Buffers are numbered with the scratch memory last; each is a scope of its own.
  std::string alias_metadata(Ref buffer) {
    auto k = buffer.is(Op::Local) ? program_.buffers : static_cast<int>(buffer.i());
    return fmt::format(", !alias.scope !{}, !noalias !{}", kScopeMetadata + 3 * k + 1,
                       kScopeMetadata + 3 * k + 2);
  }

  std::string assemble() {
    std::string text = fmt::format(
        "define void @{}(ptr noalias nocapture noundef readonly %buffers, ptr noalias nocapture noundef "
        "readonly %vars, "
        "i64 noundef %thread, ptr noalias noundef %scratch) #0 {{\nentry:\n",
        program_.name);
    text += w_.entry;
    text += "  br label %begin\nbegin:\n";
    for (const std::string& piece : w_.pieces) text += piece;
    // What went past the caches is in no order with what tells others that the loop has ended.
    if (streams_) text += "  fence seq_cst\n";
    text += "  ret void\n}\n\n";
    // With no width given the compiler would split what is wider than it prefers.
    text += fmt::format(
        "attributes #0 = {{ nounwind norecurse mustprogress \"no-builtins\" \"prefer-vector-width\"=\"{0}\" "
        "\"min-legal-vector-width\"=\"{0}\" }}\n",
        std::max(target_.vector_bytes, 16) * 8);
    text +=
        "!0 = !{}\n!1 = !{!\"llvm.loop.unroll.disable\"}\n!2 = !{!\"llvm.loop.vectorize.width\", i32 1}\n"
        "!3 = !{!\"llvm.loop.interleave.count\", i32 1}\n!4 = !{!\"llvm.loop.distribute.enable\", i1 "
        "false}\n!6 = !{i32 1}\n";
    for (const Loop& loop : loops_)
      text += fmt::format("!{0} = distinct !{{!{0}, !1, !2, !3, !4}}\n", kLoopMetadata + loop.id);
    if (program_.distinct) {
      text += "!5 = distinct !{!5}\n";
      for (int k = 0; k <= program_.buffers; ++k) {
        int at = kScopeMetadata + 3 * k;
        std::string others;
        for (int j = 0; j <= program_.buffers; ++j)
          if (j != k) others += fmt::format("{}!{}", others.empty() ? "" : ", ", kScopeMetadata + 3 * j);
        text += fmt::format("!{0} = distinct !{{!{0}, !5}}\n!{1} = !{{!{0}}}\n!{2} = !{{{3}}}\n", at, at + 1,
                            at + 2, others);
      }
    }
    return text;
  }

  static constexpr int kNontemporalMetadata = 6, kScopeMetadata = 10, kLoopMetadata = 100000;

  Ref linear_;
  const ProgramInfo& program_;
  const Target& target_;
  LlvmWriter w_;
  std::vector<Loop> loops_;  // in the order in which they begin
  std::size_t begun_ = 0;
  std::vector<std::size_t> open_;                            // outermost first
  absl::flat_hash_map<const Node*, std::string> known_;      // values
  absl::flat_hash_map<const Node*, std::string> state_;      // of accumulators, at this point
  absl::flat_hash_map<const Node*, std::string> addresses_;  // of Index nodes, while their loop is open
  std::vector<const Node*> scoped_;
  absl::flat_hash_map<const Node*, std::int64_t> scratch_;
  std::vector<Ref> written_;
  std::string label_ = "begin", zeros_;
  int branch_count_ = 0;
  bool streams_ = false;
  absl::flat_hash_map<std::pair<const Node*, int>, std::string> aligned_;  // bits of buffers
};

}  // namespace

std::string render_llvm(Ref linear, const ProgramInfo& program, const Target& target) {
  return LlvmRenderer(linear, program, target).render();
}

}  // namespace pg
