#include "fuzz/storage_fuzz.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>

#include "eval/compare.h"
#include "fuzz/seeds.h"
#include "fuzz/storage_body.h"
#include "fuzz/storage_model.h"
#include "ops/nodes.h"
#include <pangrad/jit.h>

namespace pg::fuzz {
namespace {

using eval::Array;
using eval::Dims;

constexpr DType kDTypes[] = {f32, i32, u8};
const std::string kDevices[] = {"CPU", "CPU:1", "INTERP"};
constexpr std::uint64_t kSeed = 11;

struct Variable {
  Tensor tensor;
  Model model;
  std::string name;
  std::string device;
};

using Function = Jit<std::function<Tensor(const Tensor&, const Tensor&)>>;
struct Capture {
  Body body;
  Variable captured;
  std::shared_ptr<Function> call;
  std::string name;
};

struct Failure {
  std::string what;
};

std::string braces(const Dims& dims) {
  std::string s = "{";
  for (std::size_t i = 0; i < dims.size(); ++i) s += (i ? ", " : "") + std::to_string(dims[i]);
  return s + "}";
}
Shape shape(const Dims& dims) { return Shape(std::vector<std::int64_t>(dims)); }
std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

// Floats on which a few sums and products are exact, in any order: sixteenths below 2^16, and no negative
// zero.
bool plain(const Array& a) {
  if (!is_float(a.dtype)) return true;
  return std::all_of(a.data.begin(), a.data.end(), [](Scalar v) {
    return std::abs(v.f) < 65536 && v.f * 16 == std::floor(v.f * 16) && !(v.f == 0 && std::signbit(v.f));
  });
}

class Machine {
 public:
  explicit Machine(Reads reads) : reads_(reads) {}

  Outcome run(const Program& program) {
    Outcome out;
    try {
      Tensor::manual_seed(kSeed);
      for (std::uint64_t seed : program) step(Choices(seed));
      for (Variable& v : variables_) check(v);
    } catch (const Failure& failure) {
      out.wrong = failure.what;
    } catch (const std::exception& e) {
      out.wrong = std::string("throws ") + e.what();
    }
    out.source = source_;
    return out;
  }

 private:
  void step(Choices c) {
    std::int64_t kind = c.below(100);
    if (variables_.empty() || kind < 8) return create(c);
    if (variables_.size() > 14 || kind < 12) return drop(c);
    if (kind < 36) return view(c);
    if (kind < 52) return value(c);
    if (kind < 76) return write(c);
    if (kind < 78) return draw(c);
    if (kind < 82) return call(c);
    if (kind < 84) return differentiate(c);
    if (kind < 92) return check(pick(c));
    realize(c);
  }

  Variable& pick(Choices& c) { return variables_[at(c.below(static_cast<std::int64_t>(variables_.size())))]; }

  void say(const std::string& line) { source_ += "  " + line + "\n"; }

  // A new variable; the tensor is made by f after the program's text is there.
  template <class F>
  void declare(const std::string& expression, Model model, const std::string& device, F f) {
    std::string name = "t" + std::to_string(next_++);
    say("Tensor " + name + " = " + expression + ";");
    Variable v{f(), std::move(model), name, device};
    if (v.tensor.device() != device) throw Failure{name + " is on " + v.tensor.device() + ", not " + device};
    if (v.tensor.dtype() != v.model.dtype() || v.tensor.shape() != shape(v.model.dims()))
      throw Failure{name + " is " + std::string(pg::name(v.tensor.dtype())) + " " + v.tensor.shape().str() +
                    ", not " + std::string(pg::name(v.model.dtype())) + " " + eval::text(v.model.dims())};
    variables_.push_back(std::move(v));
  }

  Array read(const Tensor& x) const {
    return reads_ == Reads::Computed ? ops::computed(x) : ops::evaluate(x);
  }

  void check(Variable& v) {
    say("check(" + v.name + ");  // " + eval::text(v.model.value(), 24));
    std::string apart = difference(read(v.tensor), v.model.value());
    if (!apart.empty()) throw Failure{v.name + ": " + apart};
  }

  Dims random_dims(Choices& c) {
    Dims dims(at(c.between(1, 3)));
    for (std::int64_t& d : dims) d = c.chance(4) ? 0 : c.between(1, 4);
    return dims;
  }
  static double random_number(Choices& c, DType t) {
    std::int64_t n = c.between(is_unsigned(t) ? 0 : -9, 9);
    return is_float(t) ? static_cast<double>(n) * 0.5 : static_cast<double>(n);
  }
  static std::string number(double v, DType t) {
    std::string s = eval::text(is_float(t) ? f64 : i64,
                               is_float(t) ? float_scalar(v) : int_scalar(static_cast<std::int64_t>(v)));
    return is_float(t) && s.find('.') == std::string::npos ? s + ".0" : s;
  }
  void create(Choices& c) {
    DType t = kDTypes[c.below(3)];
    Dims dims = random_dims(c);
    // Most on one device, so that they meet.
    const std::string& device = kDevices[c.chance(80) ? 0 : c.below(3)];
    Options options{.dtype = t, .device = device};
    std::string words = "{.dtype = " + std::string(name(t)) + ", .device = \"" + device + "\"})";
    if (c.chance(25)) {
      double v = random_number(c, t);
      Array filled(t, dims, std::vector<double>(at(eval::count(dims)), v));
      declare("Tensor::full(" + braces(dims) + ", " + number(v, t) + ", " + words, Model(filled), device,
              [&] {
                return Tensor::full(shape(dims),
                                    is_float(t) ? Number(v) : Number(static_cast<std::int64_t>(v)), options);
              });
      return;
    }
    if (c.chance(15)) {
      std::int64_t n = c.between(1, 6);
      std::vector<std::int64_t> values(at(n));
      std::iota(values.begin(), values.end(), 0);
      declare("Tensor::arange(" + std::to_string(n) + ", " + words, Model(Array(t, {n}, values)), device,
              [&] { return Tensor::arange(n, options); });
      return;
    }
    std::vector<double> values;
    for (std::int64_t i = 0, n = eval::count(dims); i < n; ++i) values.push_back(random_number(c, t));
    Array a(t, dims, values);
    std::string list;
    for (double v : values) list += (list.empty() ? "" : ", ") + number(v, t);
    const char* element = t == f32 ? "float" : t == i32 ? "std::int32_t" : "std::uint8_t";
    declare(
        "Tensor::of(std::vector<" + std::string(element) + ">{" + list + "}, " + braces(dims) + ", " + words,
        Model(a), device, [&] { return Tensor::from_host(a.bytes().data(), shape(dims), t, options); });
  }

  void drop(Choices& c) {
    std::int64_t i = c.below(static_cast<std::int64_t>(variables_.size()));
    say(variables_[at(i)].name + " = {};");
    variables_.erase(variables_.begin() + i);
  }

  void realize(Choices& c) {
    std::vector<Tensor> chosen;
    std::string list;
    for (Variable& v : variables_)
      if (c.chance(40)) {
        chosen.push_back(v.tensor);
        list += (list.empty() ? "" : ", ") + v.name;
      }
    if (chosen.empty() || reads_ == Reads::Evaluated) return;
    say("realize({" + list + "});");
    pg::realize(chosen);
  }

  // --- views
  // -------------------------------------------------------------------------------------------------------

  void view(Choices& c) {
    // Copies, since a new variable may move the others.
    Tensor t = pick(c).tensor;
    const Variable& v = *std::find_if(variables_.begin(), variables_.end(),
                                      [&](auto& x) { return x.tensor.impl() == t.impl(); });
    Model m = v.model;
    std::string n = v.name, on = v.device;
    int rank = m.rank();
    int axis = rank ? static_cast<int>(c.below(rank)) : 0;
    std::int64_t extent = rank ? m.dims()[at(axis)] : 0;
    switch (c.below(12)) {
      case 0: {
        Dims dims = factors(c, m.size());
        declare(n + ".reshape(" + braces(dims) + ")", m.reshape(dims), on,
                [&] { return t.reshape(shape(dims)); });
        return;
      }
      case 1: {
        std::vector<std::int64_t> order(at(rank));
        std::iota(order.begin(), order.end(), 0);
        for (int i = rank; i > 1; --i) std::swap(order[at(i - 1)], order[at(c.below(i))]);
        declare(n + ".permute(" + braces(order) + ")", m.permute(order), on,
                [&] { return t.permute(order); });
        return;
      }
      case 2:
        if (rank)
          declare(n + ".flip(" + std::to_string(axis) + ")", m.flip(axis), on, [&] { return t.flip(axis); });
        return;
      case 3:
      case 4:
      case 5: {
        if (!extent) return;
        auto [start, count, step] = random_slice(c, extent);
        std::string index = slices(rank, axis, start, count, step);
        declare(n + "[" + index + "]", m.slice(axis, start, count, step), on,
                [&, s = start, k = count, p = step] { return t.at(slice_index(rank, axis, s, k, p)); });
        return;
      }
      case 6: {
        if (!extent) return;
        std::int64_t i = c.below(extent);
        Dims dims = m.dims();
        dims.erase(dims.begin() + axis);
        std::vector<Index> index(at(axis), Slice{});
        index.emplace_back(i);
        std::string words;
        for (int k = 0; k < axis; ++k) words += "Slice{}, ";
        declare(n + "[{" + words + std::to_string(i) + "}]", m.slice(axis, i, 1, 1).reshape(dims), on,
                [&] { return t.at(index); });
        return;
      }
      case 7: {
        Dims dims = m.dims();
        dims.insert(dims.begin() + axis, 1);
        declare(n + ".unsqueeze(" + std::to_string(axis) + ")", m.reshape(dims), on,
                [&] { return t.unsqueeze(axis); });
        return;
      }
      case 8: {
        Dims dims = m.dims();
        for (std::int64_t& d : dims)
          if (d == 1 && c.chance(60)) d = c.between(1, 3);
        if (c.chance(40)) dims.insert(dims.begin(), c.between(1, 2));
        declare(n + ".expand(" + braces(dims) + ")", m.expand(dims), on,
                [&] { return t.expand(shape(dims)); });
        return;
      }
      case 9:
        declare(n + ".detach()", m, on, [&] { return t.detach(); });
        return;
      case 10: {
        if (rank < 2) return;
        int other = (axis + 1 + static_cast<int>(c.below(rank - 1))) % rank;
        std::int64_t offset = c.between(-1, 1);
        // Beyond the matrix there is no diagonal to speak of.
        if (-offset > m.dims()[at(axis)] || offset > m.dims()[at(other)]) return;
        declare(n + ".diagonal(" + std::to_string(offset) + ", " + std::to_string(axis) + ", " +
                    std::to_string(other) + ")",
                m.diagonal(axis, other, offset), on, [&] { return t.diagonal(offset, axis, other); });
        return;
      }
      default: {
        DType to = kDTypes[c.below(3)];
        if (to == m.dtype()) return;
        auto before = static_cast<std::int64_t>(itemsize(m.dtype())),
             after = static_cast<std::int64_t>(itemsize(to));
        if (before != after && (!rank || m.dims().back() * before % after)) return;
        if (m.size() * before > 256) return;
        declare(n + ".bitcast(" + std::string(name(to)) + ")", m.bitcast(to), on,
                [&] { return t.bitcast(to); });
      }
    }
  }

  static Dims factors(Choices& c, std::int64_t n) {
    if (n == 0) return {0};
    Dims dims;
    for (std::int64_t k : {2, 3, 4})
      if (n % k == 0 && c.chance(50)) {
        dims.push_back(k);
        n /= k;
      }
    if (n != 1 || dims.empty() || c.chance(20))
      dims.insert(dims.begin() + c.below(static_cast<std::int64_t>(dims.size()) + 1), n);
    return dims;
  }

  struct Range {
    std::int64_t start, count, step;
  };
  static Range random_slice(Choices& c, std::int64_t extent) {
    std::int64_t step = c.chance(60) ? 1 : c.chance(50) ? 2 : -1;
    std::int64_t start = c.below(extent);
    std::int64_t most = step > 0 ? (extent - start + step - 1) / step : start + 1;
    return {start, c.between(c.chance(5) ? 0 : 1, most), step};
  }
  // The slice in Python's terms: where it stops.
  static Slice as_slice(std::int64_t start, std::int64_t count, std::int64_t step) {
    std::int64_t stop = start + count * step;
    Slice s{.start = Dim(start), .step = step};
    if (stop >= 0) s.stop = Dim(stop);
    return s;
  }
  static std::vector<Index> slice_index(int rank, int axis, std::int64_t start, std::int64_t count,
                                        std::int64_t step) {
    std::vector<Index> index;
    for (int k = 0; k < rank; ++k) index.emplace_back(k == axis ? as_slice(start, count, step) : Slice{});
    return index;
  }
  static std::string slices(int rank, int axis, std::int64_t start, std::int64_t count, std::int64_t step) {
    std::string s = "{";
    for (int k = 0; k < rank; ++k) {
      std::int64_t stop = start + count * step;
      s += k ? ", " : "";
      s += k != axis ? "Slice{}"
                     : "Slice{.start = " + std::to_string(start) +
                           (stop >= 0 ? ", .stop = " + std::to_string(stop) : "") +
                           ", .step = " + std::to_string(step) + "}";
    }
    return s + "}";
  }

  // --- values
  // ------------------------------------------------------------------------------------------------------

  // A variable of the same dtype that fits `like`: broadcasts with it, or (into) to it.
  std::optional<Variable> partner(Choices& c, const Model& like, const std::string& device, bool into) {
    std::vector<std::size_t> fitting;
    for (std::size_t i = 0; i < variables_.size(); ++i) {
      const Model& m = variables_[i].model;
      Dims dims;
      if (m.dtype() == like.dtype() && variables_[i].device == device && eval::count(m.dims()) < 200 &&
          broadcast(m.dims(), like.dims(), dims) && (!into || dims == like.dims()))
        fitting.push_back(i);
    }
    if (fitting.empty()) return {};
    return variables_[fitting[at(c.below(static_cast<std::int64_t>(fitting.size())))]];
  }

  void value(Choices& c) {
    Variable v = pick(c);
    Tensor t = v.tensor;
    Array now = v.model.value();
    DType type = now.dtype;
    auto rank = static_cast<std::int64_t>(now.dims.size());
    switch (c.below(10)) {
      case 9: {
        const std::string& to = kDevices[c.below(3)];
        // On its own device it is what it was.
        declare(v.name + ".to(\"" + to + "\")", to == v.device ? v.model : Model(now), to,
                [&] { return t.to(to); });
        return;
      }
      case 0:
        declare(v.name + ".clone()", Model(now), v.device, [&] { return t.clone(); });
        return;
      case 1:
        declare(v.name + ".contiguous()", Model(now), v.device, [&] { return t.contiguous(); });
        return;
      case 2: {
        DType to = kDTypes[c.below(3)];
        declare(v.name + ".cast(" + std::string(name(to)) + ")", Model(cast(now, to)), v.device,
                [&] { return t.cast(to); });
        return;
      }
      case 3: {
        if (!plain(now)) return;
        double n = random_number(c, type);
        Array other(type, {}, {n});
        bool add = c.chance(70);
        declare(v.name + (add ? " + " : " * ") + number(n, type),
                Model(elementwise(add ? Op::Add : Op::Mul, now, other)), v.device,
                [&] { return add ? t + operand(n, type) : t * operand(n, type); });
        return;
      }
      case 4:
      case 5: {
        auto other = partner(c, v.model, v.device, false);
        if (!other || !plain(now)) return;
        Array second = other->model.value();
        if (!plain(second)) return;
        switch (c.below(3)) {
          case 0:
            declare(v.name + " + " + other->name, Model(elementwise(Op::Add, now, second)), v.device,
                    [&] { return t + other->tensor; });
            return;
          case 1:
            declare(v.name + " - " + other->name, Model(elementwise(Op::Sub, now, second)), v.device,
                    [&] { return t - other->tensor; });
            return;
          default:
            declare(v.name + ".maximum(" + other->name + ")", Model(elementwise(Op::Max, now, second)),
                    v.device, [&] { return t.maximum(other->tensor); });
            return;
        }
      }
      case 6: {
        if (!rank || !plain(now)) return;
        auto axis = static_cast<int>(c.below(rank));
        declare(v.name + ".sum(" + std::to_string(axis) + ")", Model(sum(now, axis)), v.device,
                [&] { return t.sum(axis); });
        return;
      }
      case 7: {
        if (!rank) return;
        auto axis = static_cast<int>(c.below(rank));
        for (const Variable& o : variables_) {
          Dims a = now.dims, b = o.model.dims();
          if (o.model.dtype() != type || o.device != v.device || b.size() != a.size()) continue;
          a[at(axis)] = b[at(axis)] = 0;
          if (a != b || eval::count(o.model.dims()) > 100 || c.chance(30)) continue;
          Variable second = o;
          declare("cat({" + v.name + ", " + second.name + "}, " + std::to_string(axis) + ")",
                  Model(cat(now, second.model.value(), axis)), v.device,
                  [&] { return pg::cat({t, second.tensor}, axis); });
          return;
        }
        return;
      }
      default: {
        if (!rank) return;
        std::vector<std::int64_t> rows = random_rows(c, now.dims[0]);
        declare(v.name + "[" + list(rows, v.device) + "]", Model(take(now, rows)), v.device,
                [&] { return t.at(std::vector<Index>{index_of(rows, v.device)}); });
      }
    }
  }

  static std::vector<std::int64_t> random_rows(Choices& c, std::int64_t extent) {
    std::vector<std::int64_t> rows(at(c.between(1, 4)));
    // Often repeated, now and then out of range.
    for (std::int64_t& r : rows) {
      std::int64_t low = -extent - (c.chance(10) ? 1 : 0), high = extent - (c.chance(10) ? 0 : 1);
      r = c.between(low, std::max(low, high));
    }
    return rows;
  }
  static std::string list(const std::vector<std::int64_t>& rows, const std::string& device) {
    return "Tensor::of(std::vector<std::int64_t>" + braces(rows) + ", {.device = \"" + device + "\"})";
  }
  static Index index_of(const std::vector<std::int64_t>& rows, const std::string& device) {
    return Index(Tensor::of(rows, {.device = device}));
  }

  // --- writes
  // ------------------------------------------------------------------------------------------------------

  void write(Choices& c) {
    Variable v = pick(c);
    Tensor t = v.tensor;
    const Model& m = v.model;
    DType type = m.dtype();
    int rank = m.rank();
    if (m.repeats()) {
      say("refuses(" + v.name + ".assign(1));  // an element occurs twice");
      try {
        t.assign(1);
      } catch (const ShapeError&) {
        return;
      }
      throw Failure{"a write into " + v.name + ", in which an element occurs twice, was not refused"};
    }
    // Whether a part of an expanded view may be written is left open.
    if (m.expanded()) return;
    double n = random_number(c, type);
    Array single(type, {}, {n});
    switch (c.below(9)) {
      case 0:
        say(v.name + ".assign(" + number(n, type) + ");");
        t.assign(operand(n, type));
        m.write(single);
        return;
      case 1:
      case 2: {
        auto other = partner(c, m, v.device, true);
        if (!other) return;
        say(v.name + ".assign(" + other->name + ");");
        t.assign(other->tensor);
        m.write(other->model.value());
        return;
      }
      case 3: {
        // Onto itself, turned round or shifted.
        if (!rank) return;
        auto axis = static_cast<int>(c.below(rank));
        std::int64_t extent = m.dims()[at(axis)];
        if (c.chance(40) || extent < 2) {
          say(v.name + ".assign(" + v.name + ".flip(" + std::to_string(axis) + "));");
          t.assign(t.flip(axis));
          m.write(m.flip(axis).value());
          return;
        }
        std::int64_t count = c.between(1, extent - 1), to = c.between(0, extent - count),
                     from = c.between(0, extent - count);
        say(v.name + "[" + slices(rank, axis, to, count, 1) + "] = " + v.name + "[" +
            slices(rank, axis, from, count, 1) + "];");
        t.set(slice_index(rank, axis, to, count, 1), t.at(slice_index(rank, axis, from, count, 1)));
        m.slice(axis, to, count, 1).write(m.slice(axis, from, count, 1).value());
        return;
      }
      case 4: {
        Array now = m.value();
        if (!plain(now)) return;
        auto other = c.chance(50) ? partner(c, m, v.device, true) : std::nullopt;
        Array second = other ? other->model.value() : single;
        if (!plain(second)) return;
        say(v.name + " += " + (other ? other->name : number(n, type)) + ";");
        if (other)
          t += other->tensor;
        else
          t += operand(n, type);
        m.write(elementwise(Op::Add, now, second));
        return;
      }
      case 5:
      case 6: {
        if (!rank) return;
        auto axis = static_cast<int>(c.below(rank));
        std::int64_t extent = m.dims()[at(axis)];
        if (!extent) return;
        auto [start, count, step] = random_slice(c, extent);
        Model part = m.slice(axis, start, count, step);
        auto other = c.chance(60) ? partner(c, part, v.device, true) : std::nullopt;
        say(v.name + "[" + slices(rank, axis, start, count, step) +
            "] = " + (other ? other->name : number(n, type)) + ";");
        std::vector<Index> index = slice_index(rank, axis, start, count, step);
        if (other)
          t.set(index, other->tensor);
        else
          t.set(index, operand(n, type));
        part.write(other ? other->model.value() : single);
        return;
      }
      default: {
        if (!rank || !m.dims()[0]) return;
        std::int64_t extent = m.dims()[0];
        std::vector<std::int64_t> rows = random_rows(c, extent);
        bool adds = c.chance(30) && plain(m.value());
        Array value = single;
        if (adds) value = elementwise(Op::Add, take(m.value(), rows), single);
        say(v.name + "[" + list(rows, v.device) + "] " + (adds ? "+= " : "= ") + number(n, type) + ";");
        if (adds)
          t[index_of(rows, v.device)] += operand(n, type);
        else
          t[index_of(rows, v.device)] = operand(n, type);
        for (std::size_t k = 0; k < rows.size(); ++k) {
          std::int64_t row = rows[k] < 0 ? rows[k] + extent : rows[k];
          if (row < 0 || row >= extent) continue;
          m.slice(0, row, 1, 1).write(adds ? row_of(value, k) : single);
        }
      }
    }
  }

  // --- random numbers, captured functions, gradients
  // ----------------------------------------------------------------

  void draw(Choices& c) {
    Dims dims = random_dims(c);
    const std::string& device = kDevices[c.chance(80) ? 0 : c.below(3)];
    Array u = random_.uniform(dims, device);
    std::string where = "{.device = \"" + device + "\"})";
    if (c.chance(50)) {
      declare("Tensor::rand(" + braces(dims) + ", " + where, Model(u), device,
              [&] { return Tensor::rand(shape(dims), {.device = device}); });
      return;
    }
    Array n(i32, dims);
    for (std::size_t i = 0; i < n.data.size(); ++i)
      n.data[i] = int_scalar(static_cast<std::int64_t>(static_cast<float>(u.data[i].f) * 7) - 3);
    declare("Tensor::randint(" + braces(dims) + ", {.low = -3, .high = 4, .device = \"" + device + "\"})",
            Model(n), device,
            [&] { return Tensor::randint(shape(dims), {.low = -3, .high = 4, .device = device}); });
  }

  // Makes a captured function now and then, and calls one: each of its calls, be it run, recorded or
  // replayed, does what the function says.
  void call(Choices& c) {
    if (captures_.empty() || (captures_.size() < 4 && c.chance(30))) {
      Variable v = pick(c);
      if (v.model.repeats() || v.model.expanded()) return;
      Capture f{{}, v, nullptr, "f" + std::to_string(captures_.size())};
      std::string words;
      for (std::int64_t i = c.between(0, 3); i >= 0; --i) {
        f.body.steps.emplace_back(static_cast<int>(c.below(8)), random_number(c, v.model.dtype()));
        words += "{" + std::to_string(f.body.steps.back().first) + ", " +
                 number(f.body.steps.back().second, v.model.dtype()) + "}, ";
      }
      f.body.draws = c.chance(30);
      say("auto " + f.name + " = jit([" + v.name + "](const Tensor& a, const Tensor& b) { return Body{{" +
          words + "}, " + (f.body.draws ? "true" : "false") + "}(a, b, " + v.name + "); });");
      f.call = std::make_shared<Function>(std::function<Tensor(const Tensor&, const Tensor&)>(
          [body = f.body, held = v.tensor](const Tensor& a, const Tensor& b) { return body(a, b, held); }));
      captures_.push_back(std::move(f));
    }
    Capture f = captures_[at(c.below(static_cast<std::int64_t>(captures_.size())))];
    for (std::int64_t times = c.between(1, 4); times > 0; --times) {
      auto a = partner(c, f.captured.model, f.captured.device, false);
      if (!a || a->model.repeats() || a->model.expanded()) return;
      auto b = partner(c, a->model, a->device, true);
      if (!b) return;
      // Sums in any order need whole numbers; a total that leaves its dtype's range would not be plain.
      if (!plain(a->model.value()) || !plain(b->model.value()) || !plain(f.captured.model.value())) return;
      std::string expression = f.name + "(" + a->name + ", " + b->name + ")";
      Array result = modelled(f.body, a->model, b->model, f.captured.model, random_, a->device);
      declare(expression, Model(result), a->device, [&] {
        return reads_ == Reads::Computed ? (*f.call)(a->tensor, b->tensor)
                                         : f.body(a->tensor, b->tensor, f.captured.tensor, false);
      });
    }
  }

  // The gradient of a weighted sum of a copy, part of which was overwritten through a chain of views: the
  // weights where it was not go to the copied value, those where it was to what was written.
  void differentiate(Choices& c) {
    Variable v = pick(c);
    Array now = v.model.value();
    if (now.dtype != f32 || !v.model.rank() || !v.model.size()) return;
    std::vector<double> numbers;
    for (std::int64_t i = 0; i < now.size(); ++i) numbers.push_back(random_number(c, f32));
    Array weights(f32, now.dims, numbers);
    Options options{.device = v.device};
    Tensor p = v.tensor.detach().clone().requires_grad(), y = p.clone(), part = y;
    Tensor w = Tensor::from_host(weights.bytes().data(), shape(now.dims), f32, options);
    Model left(weights), written = left;
    std::string chain;
    for (std::int64_t i = c.between(1, 3); i > 0; --i) {
      auto axis = static_cast<int>(c.below(written.rank()));
      switch (c.below(4)) {
        case 0: {
          auto [start, count, step] = random_slice(c, std::max<std::int64_t>(1, written.dims()[at(axis)]));
          if (start + (count - 1) * step >= written.dims()[at(axis)]) break;
          chain += "[{" + slices(written.rank(), axis, start, count, step) + "}]";
          part = part.at(slice_index(written.rank(), axis, start, count, step));
          written = written.slice(axis, start, count, step);
          break;
        }
        case 1:
          chain += ".flip(" + std::to_string(axis) + ")";
          part = part.flip(axis);
          written = written.flip(axis);
          break;
        case 2: {
          std::vector<std::int64_t> order(at(written.rank()));
          std::iota(order.begin(), order.end(), 0);
          std::rotate(order.begin(), order.begin() + axis, order.end());
          chain += ".permute(" + braces(order) + ")";
          part = part.permute(order);
          written = written.permute(order);
          break;
        }
        default:
          chain += ".flatten()";
          part = part.flatten();
          written = written.reshape({written.size()});
      }
    }
    say("{ Tensor p = " + v.name + ".detach().clone().requires_grad(), y = p.clone(), q = Tensor::full(" +
        braces(written.dims()) + ", 0.5).contiguous().requires_grad(); y" + chain +
        ".assign(q); (y * w).sum().backward(); }  // w = " + eval::text(weights, 24));
    Tensor q = Tensor::full(shape(written.dims()), 0.5, options).requires_grad();
    bool compute = reads_ == Reads::Computed;
    if (compute && c.chance(30)) y.realize();
    part.assign(q);
    if (compute && c.chance(30)) y.realize();
    Tensor loss = (y * w).sum();
    if (compute && c.chance(30)) loss.realize();
    loss.backward();
    Array dq = written.value();
    written.write(Array(f32, {}, {0.0}));
    auto expect = [&](const Tensor& target, const char* name, const Array& want) {
      // Nothing reaches what was overwritten as a whole.
      if (!target.grad().defined() && plain_zero(want)) return;
      if (std::string apart = difference(read(target.grad()), want); !apart.empty())
        throw Failure{std::string("the gradient of ") + name + ": " + apart};
    };
    expect(p, "p", left.value());
    expect(q, "q", dq);
  }
  static bool plain_zero(const Array& a) {
    return std::all_of(a.data.begin(), a.data.end(), [](Scalar v) { return v.f == 0; });
  }

  static Array row_of(const Array& a, std::size_t k) {
    const std::int64_t row[] = {static_cast<std::int64_t>(k)};
    return take(a, row);
  }

  Reads reads_;
  RandomModel random_{kSeed};
  std::vector<Variable> variables_;
  std::vector<Capture> captures_;
  std::string source_;
  int next_ = 0;
};

}  // namespace

Program random_program(std::uint64_t seed) {
  Choices c(seed * 0x9E3779B97F4A7C15u + 1);
  Program p;
  for (std::int64_t i = 0, n = c.between(4, 40); i < n; ++i)
    p.push_back(static_cast<std::uint64_t>(c.below(1 << 30)));
  return p;
}

Outcome run(const Program& program, Reads reads) { return Machine(reads).run(program); }

std::string kind_of(std::string wrong) {
  if (!wrong.starts_with("throws")) return "wrong";
  std::erase_if(wrong, [](char c) { return !std::isalpha(static_cast<unsigned char>(c)); });
  return wrong;
}

Program shrink(Program program, Reads reads) {
  std::string kind = kind_of(run(program, reads).wrong);
  for (std::size_t chunk = program.size() / 2; chunk > 0;) {
    bool smaller = false;
    for (std::size_t start = 0; start + chunk <= program.size();) {
      Program without = program;
      auto from = without.begin() + static_cast<std::ptrdiff_t>(start);
      without.erase(from, from + static_cast<std::ptrdiff_t>(chunk));
      std::string wrong = run(without, reads).wrong;
      if (!wrong.empty() && kind_of(wrong) == kind) {
        program = std::move(without);
        smaller = true;
      } else {
        start += chunk;
      }
    }
    chunk = smaller ? std::min(chunk, program.size()) : chunk / 2;
  }
  return program;
}

}  // namespace pg::fuzz
