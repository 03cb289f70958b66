// The reverse walk: gradients of a value with respect to Leaf nodes, as graphs, in one pass over the nodes
// between. backward() and gradient() on top of it.
#include "rules/gradient.h"

#include <algorithm>

#include "engine/engine.h"
#include "tensor/ops.h"
#include "tensor/watch.h"

namespace pg {
namespace detail {
namespace {

// A gradient on its way. Where the mask of a Where is off it is 0, whatever the arithmetic on the way makes
// of that (0 * infinity): `spoiled` says that it may have, so the mask must be applied once more.
struct Gradient {
  Ref value;
  Ref mask = {};
  bool spoiled = false;
};

Ref applied(const Gradient& g) {
  return g.mask && g.spoiled ? where(g.mask, g.value, const_like(g.value, 0)) : g.value;
}

class Walk {
 public:
  Walk(Ref root, const absl::flat_hash_set<LeafId*>* targets) : order_(toposort(root)), targets_(targets) {
    for (Ref n : order_)
      if (needs(n)) needed_.insert(n.node());
  }

  bool reaches_any() const { return needed_.contains(order_.back().node()); }
  bool passes(Ref n) const { return needed_.contains(n.node()); }
  const std::vector<Ref>& leaves() const { return leaves_; }

  /// The gradient of each identity that was reached.
  absl::flat_hash_map<LeafId*, Ref> run(Ref seed) {
    absl::flat_hash_map<LeafId*, Ref> out;
    at_[order_.back().node()] = {seed, nullptr, false};
    for (std::size_t i = order_.size(); i-- > 0;) {
      Ref n = order_[i];
      auto it = at_.find(n.node());
      if (it == at_.end()) continue;
      Gradient g = it->second;
      at_.erase(it);
      if (n.is(Op::Leaf)) {
        Ref& sum = out[&n.object<LeafId>()];
        Ref v = expand(applied(g), shape_of(n));
        sum = sum ? sum + v : v;
      } else {
        spread(n, g);
      }
    }
    return out;
  }

 private:
  bool needs(Ref n) {
    if (n.is(Op::Leaf)) {
      LeafId& id = n.object<LeafId>();
      if (targets_ ? !targets_->contains(&id) : !id.tag->cell) return false;
      leaves_.push_back(n);
      return true;
    }
    if (n.is(Op::Store)) return needed_.contains(n.src(1).node());
    if (!is_float(n.dtype()) || n.is(Op::Detach) || n.is(Op::Bitcast) || n.is(Op::Trunc) || n.has(kLeaf))
      return false;
    return std::any_of(n.srcs().begin(), n.srcs().end(), [&](Node* s) { return needed_.contains(s); });
  }

  void spread(Ref n, Gradient g) {
    bool plain_movement = n.has(kMovement) && !n.is(Op::Expand);
    if (g.mask && !n.has(kElementwise) && !plain_movement) g = {applied(g), {}};
    g.value = expand(g.value, shape_of(n));
    Ref answer = rules::gradient().apply(make(Op::Tuple, DType::Void, {n, n, g.value}));
    if (!answer) throw ValueError("[backward] " + std::string(info(n.op()).name) + " has no gradient");
    g.spoiled |= rules::may_spoil_zero(n);
    for (int k = 0; k < answer.nsrc(); k += 2) {
      Ref source = answer.src(k);
      if (!needed_.contains(source.node())) continue;
      Gradient share{answer.src(k + 1), g.mask, g.spoiled};
      if (plain_movement && share.mask)
        share.mask = rules::transpose_movement(n, expand(share.mask, shape_of(n)));
      if (n.is(Op::Where)) {
        Ref on = k == 0 ? n.src(0) : logical_not(n.src(0));
        share.mask = share.mask ? share.mask & on : on;
      }
      if (n.is(Op::Copy)) {
        std::string home = engine::device_of(source);
        if (!home.empty())
          share.value = make(Op::Copy, share.value.dtype(), {share.value}, Arg{.p = str_payload(home)});
      }
      add(source, to_shape(share, shape_of(source)));
    }
  }

  // Sums up what a source repeated for by broadcasting.
  Gradient to_shape(Gradient g, Ref shape) {
    Ref from = shape_of(g.value);
    if (same(from, shape)) return g;
    int extra = rank(from) - rank(shape);
    std::uint64_t axes = 0;
    for (int i = 0; i < rank(from); ++i) {
      bool gone = i < extra;
      if (gone || (dim(shape, i - extra).is_const(1) && !dim(from, i).is_const(1)))
        axes |= std::uint64_t{1} << i;
    }
    if (!axes) return g;
    Ref v = applied(g);
    DType t = v.dtype();
    v = cast(reduce(cast(v, accumulator(t)), Op::Add, axes), t);
    Sizes sizes = sizes_of(shape_of(v));
    if (extra > 0) sizes.erase(sizes.begin(), sizes.begin() + extra);
    return {reshape(v, shape_of_sizes(sizes)), {}};
  }

  void add(Ref n, const Gradient& g) {
    auto [it, fresh] = at_.try_emplace(n.node(), g);
    if (fresh) return;
    Gradient& sum = it->second;
    if (sum.mask && g.mask && same(sum.mask, g.mask))
      sum = {sum.value + g.value, g.mask, sum.spoiled || g.spoiled};
    else
      sum = {applied(sum) + applied(g), {}};
  }

  std::vector<Ref> order_;
  const absl::flat_hash_set<LeafId*>* targets_;  // null: all that live
  absl::flat_hash_set<Node*> needed_;
  std::vector<Ref> leaves_;
  absl::flat_hash_map<Node*, Gradient> at_;
};

void check_not_overwritten(const char* op, const Walk& walk) {
  for (Ref leaf : walk.leaves()) {
    LeafId& id = leaf.object<LeafId>();
    Cell* cell = id.tag->cell;
    if (cell && cell->version != id.version)
      fail<ValueError>(op,
                       "a marked tensor of shape {} was overwritten by [{}] after it was read: its gradient "
                       "would be that of other contents",
                       text(shape_of(leaf)), cell->last_write);
  }
}

// What to do about a history that ended.
std::string_view after_end(std::string_view op) {
  if (op == "backward") return "; retain it to use it again";
  if (op == "jit") return ", which returned it: call backward() inside the function";
  return ", which overwrote what it was computed from";
}

Value root_of(const char* op, const Tensor& x, const Tensor& given, Ref& seed) {
  Value v = read(x, op);
  if (CellWatch* watch = cell_watch()) watch->gradient_taken();
  check_float(op, v.dtype());
  Ref shape = v.shape();
  if (given.defined()) {
    Value g = read(given, op);
    if (!same(g.shape(), shape))
      fail<ShapeError>(op, "a gradient of shape {} for a value of shape {}", text(g.shape()), text(shape));
    if (g.dtype() != v.dtype())
      fail<DTypeError>(op, "a gradient of {} for a value of {}", text(g.dtype()), text(v.dtype()));
    seed = g.node;
  } else {
    if (!is_concrete(shape) || numel(shape) != 1)
      fail<ShapeError>(op, "shape {} is no scalar: reduce it, or say what gradient comes in", text(shape));
    seed = expand(const_like(v.node, 1), shape);
  }
  return v;
}

}  // namespace
}  // namespace detail

using namespace detail;

void Tensor::backward() const { backward(BackwardOptions{}); }

void Tensor::backward(const BackwardOptions& options) const {
  constexpr const char* kName = "backward";
  GraphScope scope;
  Ref seed;
  Value v = root_of(kName, *this, options.gradient, seed);
  if (!v.tracked) {
    if (const char* why = impl_->cell->history_end)
      fail<ValueError>(kName, "the history of this tensor ended with [{}]{}", why, after_end(why));
    fail<ValueError>(kName, "nothing that this tensor was computed from requires gradients");
  }
  Walk walk(v.node, nullptr);
  if (!walk.reaches_any())
    fail<ValueError>(kName, "nothing that this tensor was computed from requires gradients");
  check_not_overwritten(kName, walk);
  auto gradients = walk.run(seed);
  // In the order in which they were read.
  for (Ref leaf : walk.leaves()) {
    auto it = gradients.find(&leaf.object<LeafId>());
    if (it == gradients.end()) continue;
    Ref g = make(Op::Detach, it->second.dtype(), {it->second});
    gradients.erase(it);
    Cell& cell = *leaf.object<LeafId>().tag->cell;
    if (!cell.grad.defined()) {
      cell.grad = computed(g, false, cell.device);
    } else {
      NoGrad off;
      Value old = detail::read(cell.grad, kName);
      write(cell.grad, {old.node + g, false, cell.device}, kName);
    }
  }
  if (options.retain) return;
  for (Cell* c = first_cell(); c; c = c->next)
    if (c->tracked && walk.passes(c->node)) end_history(*c, kName);
}

std::vector<Tensor> Tensor::gradient(TensorList targets) const { return gradient(targets, Tensor()); }

std::vector<Tensor> Tensor::gradient(TensorList targets, const Tensor& given) const {
  constexpr const char* kName = "gradient";
  GraphScope scope;
  Ref seed;
  Value v = root_of(kName, *this, given, seed);
  absl::flat_hash_set<LeafId*> ids;
  std::vector<LeafId*> wanted;
  absl::flat_hash_set<CellTag*> tags;
  for (const Tensor& t : targets.span()) {
    Value target = detail::read(t, kName);
    if (!t.impl()->cell->marked || !t.impl()->whole)
      fail<ValueError>(kName, "target {} of shape {} is not marked: say requires_grad() before it is used",
                       wanted.size(), detail::text(target.shape()));
    // Under NoGrad the mark is not read; what was computed before still names it.
    Cell& cell = *t.impl()->cell;
    wanted.push_back(cell.leaf ? &cell.leaf.ref().object<LeafId>() : nullptr);
    if (cell.tag) tags.insert(cell.tag.get());
  }
  for (Ref n : toposort(v.node))
    if (n.is(Op::Leaf) && tags.contains(n.object<LeafId>().tag.get())) ids.insert(&n.object<LeafId>());
  Walk walk(v.node, &ids);
  check_not_overwritten(kName, walk);
  absl::flat_hash_map<LeafId*, Ref> gradients;
  if (walk.reaches_any()) gradients = walk.run(seed);
  std::vector<Tensor> out;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const Cell& cell = *targets.span()[i].impl()->cell;
    auto it = gradients.find(wanted[i]);
    if (it != gradients.end())
      out.push_back(computed(it->second, !NoGrad::enabled(), cell.device));
    else
      out.push_back(computed(pg::expand(const_like(cell.node, 0), shape_of(cell.node)), false, cell.device));
  }
  return out;
}

Tensor Tensor::requires_grad(bool on) const {
  constexpr const char* kName = "requires_grad";
  GraphScope scope;
  Value v = detail::read(*this, kName);
  check_float(kName, v.dtype());
  if (!impl_->whole) fail<ValueError>(kName, "this is a view: mark the tensor it looks at");
  mark(*impl_->cell, on);
  return *this;
}
bool Tensor::wants_grad() const {
  GraphScope scope;
  detail::read(*this, "wants_grad");
  return impl_->cell->marked;
}

Tensor Tensor::grad() const {
  GraphScope scope;
  detail::read(*this, "grad");
  Impl* grad = impl_->cell->grad.impl();
  if (grad) grad->refs.fetch_add(1, std::memory_order_relaxed);
  return Tensor(grad);
}
void Tensor::set_grad(const Tensor& gradient) const {
  constexpr const char* kName = "set_grad";
  GraphScope scope;
  Value v = detail::read(*this, kName);
  if (gradient.defined()) {
    Value g = detail::read(gradient, kName);
    if (!same(g.shape(), v.shape()))
      fail<ShapeError>(kName, "a gradient of shape {} for a tensor of shape {}", detail::text(g.shape()),
                       detail::text(v.shape()));
    if (g.dtype() != v.dtype())
      fail<DTypeError>(kName, "a gradient of {} for a tensor of {}", detail::text(g.dtype()),
                       detail::text(v.dtype()));
  }
  impl_->cell->grad = gradient;
}

}  // namespace pg
