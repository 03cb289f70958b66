// Indexing: integers and slices as views, index tensors as rows to read or replace, gather and scatter.
#include <algorithm>

#include "tensor/scatter.h"

namespace pg {
namespace detail {
namespace {

// What the integers and slices of an index make of a tensor, as movements; and where index tensors pick.
struct Plan {
  Sizes sizes, offsets;                         // of the box that is cut out
  absl::InlinedVector<std::int64_t, 8> step;    // of each axis of the box
  absl::InlinedVector<std::int64_t, 8> column;  // the element of each step that is taken
  Sizes counts;                                 // how many are taken
  std::uint64_t flips = 0;
  Sizes result;  // without the axes that integers drop, with the new ones
  struct Pick {
    int axis;  // of the result
    Tensor rows;
  };
  std::vector<Pick> picks;
  bool adjacent = true;
  bool strided = false;
};

// Python's slice of an axis of n: first position, how many, in steps of |step|.
struct Run {
  std::int64_t lowest, count;
};
Run run_of(const Slice& s, std::int64_t n) {
  auto clip = [](std::int64_t v, std::int64_t lo, std::int64_t hi) { return std::clamp(v, lo, hi); };
  bool back = s.step < 0;
  auto position = [&](const std::optional<Dim>& d, std::int64_t otherwise) {
    if (!d) return otherwise;
    std::int64_t v = d->max();
    if (v < 0) v += n;
    return back ? clip(v, -1, n - 1) : clip(v, 0, n);
  };
  std::int64_t start = position(s.start, back ? n - 1 : 0), stop = position(s.stop, back ? -1 : n);
  std::int64_t size = back ? start - stop : stop - start, width = back ? -s.step : s.step;
  std::int64_t count = size <= 0 ? 0 : (size - 1) / width + 1;
  return {count == 0 ? 0 : back ? start - (count - 1) * width : start, count};
}

void take_axis(Plan& plan, Ref size, Ref offset, Ref count, std::int64_t step = 1, std::int64_t column = 0) {
  plan.sizes.push_back(size);
  plan.offsets.push_back(offset);
  plan.counts.push_back(count);
  plan.step.push_back(step);
  plan.column.push_back(column);
  plan.strided |= step != 1;
}

void take_slice(const char* op, Plan& plan, const Slice& s, Ref n, Ref shape) {
  if (s.step == 0) fail<ValueError>(op, "a slice of step 0");
  bool symbolic = !n.is_const() || (s.start && s.start->is_symbolic()) || (s.stop && s.stop->is_symbolic());
  if (symbolic) {
    if (s.step != 1) fail<IndexError>(op, "a symbolic slice of step {}: only 1 will do", s.step);
    auto position = [&](const std::optional<Dim>& d, Ref otherwise) {
      if (!d) return otherwise;
      return !d->is_symbolic() && d->max() < 0 ? n + idx(d->max()) : dim_from(*d);
    };
    Ref start = position(s.start, idx(0)), stop = position(s.stop, n);
    if (start.lo() < 0 || bound_value(start) > bound_value(stop) || bound_value(stop) > bound_value(n))
      fail<IndexError>(op, "{}..{} is no part of axis {} of {}", Dim(start.node()).str(),
                       Dim(stop.node()).str(), plan.sizes.size(), text(shape));
    return take_axis(plan, stop - start, start, stop - start);
  }
  Run run = run_of(s, n.i());
  std::int64_t width = std::abs(s.step);
  if (s.step < 0) plan.flips |= std::uint64_t{1} << plan.sizes.size();
  if (width == 1 || run.count <= 1) return take_axis(plan, idx(run.count), idx(run.lowest), idx(run.count));
  // Whole steps that contain the elements, at the same place in each; beyond the end only if nothing else
  // fits.
  std::int64_t length = run.count * width, column = std::max<std::int64_t>(0, run.lowest + length - n.i());
  if (column > std::min(run.lowest, width - 1)) {
    column = 0;
    length = (run.count - 1) * width + 1;
  }
  take_axis(plan, idx(length), idx(run.lowest - column), idx(run.count), width, column);
}

Tensor rows_of(const char* op, const Tensor& rows, Ref n) {
  Value v = read(rows, op);
  if (!is_int(v.dtype()))
    fail<IndexError>(op, "an index tensor is {}: indices are integers (masks have where and masked_fill)",
                     text(v.dtype()));
  DType t = v.dtype() == i64 || v.dtype() == u64 || v.dtype() == u32 || n.hi() > int_max(i32) ? i64 : i32;
  Ref r = cast(v.node, t);
  if (!is_unsigned(v.dtype())) r = where(r < int_const(t, 0), r + cast(n, t), r);
  return computed(r, false, v.device);
}

Tensor list_of(const char* op, const std::vector<std::int64_t>& list, Ref n, Ref shape, int axis,
               Device device) {
  std::vector<std::int64_t> rows(list);
  for (std::int64_t& r : rows) {
    if (r < -n.hi() || r >= n.hi())
      fail<IndexError>(op, "index {} is out of range for axis {} of {}", r, axis, text(shape));
    if (r < 0 && n.is_const()) r += n.i();
  }
  return rows_of(op, Tensor::of(rows, {.device = device ? *device : std::string()}), n);
}

Plan plan_of(const char* op, std::span<const Index> index, Ref shape, Device device) {
  int named = 0, ellipses = 0;
  for (const Index& i : index) {
    named += !std::holds_alternative<Ellipsis>(i.form()) && !std::holds_alternative<NewAxis>(i.form());
    ellipses += std::holds_alternative<Ellipsis>(i.form());
  }
  int axes = rank(shape);
  if (ellipses > 1) fail<IndexError>(op, "more than one ellipsis");
  if (named > axes)
    fail<IndexError>(op, "{} positions for shape {}, which has {} axes", named, text(shape), axes);
  Plan plan;
  int axis = 0, last_pick = -1;
  auto whole = [&] {
    Ref n = dim(shape, axis++);
    take_axis(plan, n, idx(0), n);
    plan.result.push_back(n);
  };
  auto pick = [&](Tensor rows, int at) {
    plan.adjacent &= last_pick < 0 || last_pick + 1 == at;
    last_pick = at;
    plan.picks.push_back({static_cast<int>(plan.result.size()), std::move(rows)});
    whole();
  };
  int at = 0;
  for (const Index& i : index) {
    ++at;
    if (std::holds_alternative<NewAxis>(i.form())) {
      plan.result.push_back(idx(1));
    } else if (std::holds_alternative<Ellipsis>(i.form())) {
      for (int k = 0; k < axes - named; ++k) whole();
    } else if (const auto* d = std::get_if<Dim>(&i.form())) {
      Ref n = dim(shape, axis), p = dim_from(*d);
      if (p.is_const()) {
        if (p.i() < -n.hi() || p.i() >= n.hi())
          fail<IndexError>(op, "index {} is out of range for axis {} of {}", p.i(), axis, text(shape));
        if (p.i() < 0) p = n + p;
      } else if (bound_value(p) < 0 || bound_value(p) >= bound_value(n)) {
        fail<IndexError>(op, "index {} is out of range for axis {} of {}", d->str(), axis, text(shape));
      }
      ++axis;
      take_axis(plan, idx(1), p, idx(1));
    } else if (const auto* s = std::get_if<Slice>(&i.form())) {
      take_slice(op, plan, *s, dim(shape, axis++), shape);
      plan.result.push_back(plan.counts.back());
    } else if (const auto* list = std::get_if<std::vector<std::int64_t>>(&i.form())) {
      pick(list_of(op, *list, dim(shape, axis), shape, axis, device), at);
    } else {
      pick(rows_of(op, *std::get<std::shared_ptr<const Tensor>>(i.form()), dim(shape, axis)), at);
    }
  }
  while (axis < axes) whole();
  return plan;
}

Tensor basic(const Tensor& x, const char* op, const Plan& plan) {
  Ref box = shape_of_sizes(plan.sizes), offset = shape_of_sizes(plan.offsets),
      counts = shape_of_sizes(plan.counts);
  Ref result = shape_of_sizes(plan.result), whole_steps, split, column, column_offset;
  if (plan.strided) {
    Sizes padded, steps, one, at;
    for (std::size_t i = 0; i < plan.sizes.size(); ++i) {
      padded.push_back(plan.counts[i] * idx(plan.step[i]));
      steps.insert(steps.end(), {plan.counts[i], idx(plan.step[i])});
      one.insert(one.end(), {plan.counts[i], idx(1)});
      at.insert(at.end(), {idx(0), idx(plan.column[i])});
    }
    whole_steps = shape_of_sizes(padded);
    split = shape_of_sizes(steps);
    column = shape_of_sizes(one);
    column_offset = shape_of_sizes(at);
  }
  return view_of(x, op, [&](Ref n) {
    n = shrink(n, box, offset);
    if (plan.strided) {
      n = pad(n, whole_steps, shape_node(Sizes(plan.sizes.size(), idx(0))));
      n = reshape(shrink(reshape(n, split), column, column_offset), counts);
    }
    return reshape(flip(n, plan.flips), result);
  });
}

// The picked axes of a basic view in front, as one axis; and the row of each position there, -1 for none.
struct Rows {
  Tensor table;                     // (n, rest...)
  Tensor flat;                      // rows, of the shape the index tensors broadcast to
  Shape picked, rest;               // the picked axes, and the others
  std::vector<std::int64_t> order;  // of the basic view's axes: picked first
  int front;                        // where the rows' axes go among the rest
};

Rows rows_in(const char* op, const Tensor& view, const Plan& plan) {
  Rows r;
  for (const Plan::Pick& p : plan.picks) r.order.push_back(p.axis);
  for (int i = 0; i < view.ndim(); ++i)
    if (std::none_of(plan.picks.begin(), plan.picks.end(), [i](const auto& p) { return p.axis == i; })) {
      r.order.push_back(i);
      r.rest.push_back(view.size(i));
    }
  r.front = plan.adjacent ? plan.picks[0].axis : 0;
  Shape table = r.rest;
  Dim n = 1;
  for (const Plan::Pick& p : plan.picks) {
    r.picked.push_back(view.size(p.axis));
    n = n * r.picked.back();
  }
  table.insert(0, n);
  r.table = view.permute(r.order).reshape(table);
  if (plan.picks.size() == 1) {
    r.flat = plan.picks[0].rows;
    return r;
  }
  Tensor inside;
  for (std::size_t i = 0; i < plan.picks.size(); ++i) {
    Tensor rows = plan.picks[i].rows;
    if (n.max() > int_max(i32)) rows = rows.cast(i64);
    Tensor size = Tensor(r.picked[static_cast<int>(i)]).cast(rows.dtype());
    Tensor ok = (rows >= 0) & (rows < size);
    inside = inside.defined() ? inside & ok : ok;
    r.flat = r.flat.defined() ? r.flat * size + rows : rows;
  }
  r.flat = inside.where(r.flat, -1);
  (void)op;
  return r;
}

}  // namespace

Tensor read_rows(const Tensor& table, const Tensor& rows, const char* op) {
  Value x = read(table, op), r = read(rows, op);
  return computed(index_rows(x.node, r.node), x.tracked, device_of(op, x, r));
}

void assign(const Tensor& x, const Operand& value, const char* op) {
  GraphScope scope;
  Value target = read(x, op);
  Value v = value.tensor() ? read(*value.tensor(), op) : value_of(value, op, target.dtype());
  if (v.dtype() != target.dtype())
    fail<DTypeError>(op, "the value is {}, the target {}: cast it first", text(v.dtype()),
                     text(target.dtype()));
  Ref s = broadcast(target.shape(), v.shape());
  if (!s || !same(s, target.shape()))
    fail<ShapeError>(op, "a value of shape {} does not broadcast to the target's {}", text(v.shape()),
                     text(target.shape()));
  Device from = v.device, to = target.device;
  if (from && from != (to ? to : default_device()))
    fail<DeviceError>(op, "the value is on {}, the target on {}: move it with to()", *from,
                      to ? *to : *default_device());
  if (same(v.node, target.node)) return;
  write(x, v, op);
  if (!to) x.impl()->cell->device = from;
}

}  // namespace detail

using namespace detail;

Tensor Tensor::at(std::span<const Index> index) const {
  constexpr const char* kName = "index";
  GraphScope scope;
  Value self = detail::read(*this, kName);
  Plan plan = plan_of(kName, index, self.shape(), self.device);
  Tensor view = basic(*this, kName, plan);
  if (plan.picks.empty()) return view;
  Rows r = rows_in(kName, view, plan);
  Tensor out = read_rows(r.table, r.flat, kName);
  // The rows' axes lead; they belong where the picked axes were.
  int lead = r.flat.ndim();
  if (r.front == 0) return out;
  std::vector<std::int64_t> order;
  for (int i = 0; i < r.front; ++i) order.push_back(lead + i);
  for (int i = 0; i < lead; ++i) order.push_back(i);
  for (int i = lead + r.front; i < out.ndim(); ++i) order.push_back(i);
  Tensor moved = out.permute(order);
  Value v = detail::read(moved, kName);
  return computed(v.node, v.tracked, v.device);
}

void Tensor::set(std::span<const Index> index, const Operand& value) {
  constexpr const char* kName = "setitem";
  GraphScope scope;
  Value self = detail::read(*this, kName);
  Plan plan = plan_of(kName, index, self.shape(), self.device);
  Tensor view = basic(*this, kName, plan);
  if (plan.picks.empty()) return detail::assign(view, value, kName);
  Rows r = rows_in(kName, view, plan);
  Shape target = r.rest;
  for (int i = 0; i < r.flat.ndim(); ++i) target.insert(r.front + i, r.flat.size(i));
  Value v = value.tensor() ? detail::read(*value.tensor(), kName) : value_of(value, kName, view.dtype());
  if (v.dtype() != view.dtype())
    fail<DTypeError>(kName, "the value is {}, the target {}: cast it first", detail::text(v.dtype()),
                     detail::text(view.dtype()));
  Ref wanted = shape_from(target), s = broadcast(wanted, v.shape());
  if (!s || !same(s, wanted))
    fail<ShapeError>(kName, "a value of shape {} does not broadcast to the target's {}",
                     detail::text(v.shape()), target.str());
  Dim count = r.flat.numel(), n = r.table.size(0);
  if (!count.is_symbolic() && count == 0) return;
  // Which of the rows writes each element of the table: the last that names it.
  Tensor winner = Targets(r.flat.reshape({count}), n).last();
  // The rows' axes in front, as in the table.
  Tensor values = computed(pg::expand(v.node, wanted), v.tracked, v.device);
  std::vector<std::int64_t> order;
  for (int i = 0; i < r.flat.ndim(); ++i) order.push_back(r.front + i);
  for (int i = 0; i < values.ndim(); ++i)
    if (i < r.front || i >= r.front + r.flat.ndim()) order.push_back(i);
  Shape flat = r.rest;
  flat.insert(0, count);
  values = values.permute(order).reshape(flat);
  Shape hit(std::vector<Dim>(static_cast<std::size_t>(flat.rank()), 1));
  hit[0] = n;
  Tensor table = pg::where((winner >= 0).reshape(hit), read_rows(values, winner, kName), r.table);
  Shape unflat = r.picked;
  for (const Dim& d : r.rest) unflat.push_back(d);
  std::vector<std::int64_t> back(r.order.size());
  for (std::size_t i = 0; i < r.order.size(); ++i)
    back[static_cast<std::size_t>(r.order[i])] = static_cast<std::int64_t>(i);
  detail::assign(view, table.reshape(unflat).permute(back), kName);
}

namespace {

bool has_rows(std::span<const Index> index) {
  return std::any_of(index.begin(), index.end(), [](const Index& i) {
    return std::holds_alternative<std::vector<std::int64_t>>(i.form()) ||
           std::holds_alternative<std::shared_ptr<const Tensor>>(i.form());
  });
}

}  // namespace

Indexed::Indexed(Tensor value, Tensor base, std::span<const Index> index)
    : Tensor(std::move(value)), base_(std::move(base)) {
  if (base_.defined()) index_ = std::make_shared<const std::vector<Index>>(index.begin(), index.end());
}
void Indexed::operator=(const Operand& value) && {
  if (base_.defined())
    base_.set(*index_, value);
  else
    detail::assign(*this, value, "setitem");
}
Indexed& Indexed::operator=(const Tensor& value) & {
  Tensor::operator=(value);
  base_ = Tensor();
  return *this;
}
void Indexed::operator+=(const Operand& value) && { std::move(*this) = *this + value; }
void Indexed::operator-=(const Operand& value) && { std::move(*this) = *this - value; }
void Indexed::operator*=(const Operand& value) && { std::move(*this) = *this * value; }
void Indexed::operator/=(const Operand& value) && { std::move(*this) = *this / value; }

Indexed Tensor::operator[](std::initializer_list<Index> index) {
  std::span<const Index> list(index.begin(), index.size());
  return {at(list), has_rows(list) ? *this : Tensor(), list};
}
Indexed Tensor::operator[](const Index& index) {
  std::span<const Index> list(&index, 1);
  return {at(list), has_rows(list) ? *this : Tensor(), list};
}
Tensor Tensor::operator[](std::initializer_list<Index> index) const {
  return at({index.begin(), index.size()});
}
Tensor Tensor::operator[](const Index& index) const { return at({&index, 1}); }

// --- assignment
// ----------------------------------------------------------------------------------------------------

Tensor& Tensor::assign(const Operand& value) {
  detail::assign(*this, value, "assign");
  return *this;
}
Tensor& Tensor::operator+=(const Operand& value) {
  detail::assign(*this, *this + value, "+=");
  return *this;
}
Tensor& Tensor::operator-=(const Operand& value) {
  detail::assign(*this, *this - value, "-=");
  return *this;
}
Tensor& Tensor::operator*=(const Operand& value) {
  detail::assign(*this, *this * value, "*=");
  return *this;
}
Tensor& Tensor::operator/=(const Operand& value) {
  detail::assign(*this, *this / value, "/=");
  return *this;
}
Tensor& Tensor::operator&=(const Operand& value) {
  detail::assign(*this, *this & value, "&=");
  return *this;
}
Tensor& Tensor::operator|=(const Operand& value) {
  detail::assign(*this, *this | value, "|=");
  return *this;
}
Tensor& Tensor::operator^=(const Operand& value) {
  detail::assign(*this, *this ^ value, "^=");
  return *this;
}
Tensor& Tensor::operator<<=(const Operand& value) {
  detail::assign(*this, *this << value, "<<=");
  return *this;
}
Tensor& Tensor::operator>>=(const Operand& value) {
  detail::assign(*this, *this >> value, ">>=");
  return *this;
}

// --- by rows along an axis
// ----

Tensor Tensor::index_select(std::int64_t axis, const Tensor& index) const {
  GraphScope scope;
  int a = axis_of("index_select", axis, detail::read(*this, "index_select").shape());
  if (index.ndim() != 1)
    fail<ShapeError>("index_select", "takes an index of one axis, not shape {}", index.shape().str());
  std::vector<Index> at(static_cast<std::size_t>(a), Slice{});
  at.emplace_back(index);
  return this->at(at);
}

Tensor Tensor::one_hot(std::int64_t classes) const {
  if (!is_int(dtype())) fail<DTypeError>("one_hot", "takes integers, not {}", detail::text(dtype()));
  Tensor x = unsqueeze(-1);
  return (x == positions(x.dtype(), classes, x.ndim() - 1, x.ndim())).cast(i32);
}

}  // namespace pg
