#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "ir/print.h"
#include "ir/scalar.h"
#include "runtime/interp/code.h"
#include "runtime/interp/races.h"

namespace pg::runtime::interp {
namespace {

using Word = std::uint64_t;

Scalar scalar_of(DType t, Word w) {
  switch (t) {
    case DType::F32:
      return float_scalar(static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(w))));
    case DType::F64:
      return float_scalar(std::bit_cast<double>(w));
    case DType::F16:
    case DType::BF16:
      return from_bits(t, w);
    default:
      return int_scalar(static_cast<std::int64_t>(w));
  }
}

Word word_of(DType t, Scalar v) {
  switch (t) {
    case DType::F32:
      return std::bit_cast<std::uint32_t>(static_cast<float>(v.f));
    case DType::F64:
      return std::bit_cast<Word>(v.f);
    case DType::F16:
    case DType::BF16:
      return to_bits(t, v);
    default:
      return static_cast<Word>(v.i);
  }
}

// From the bytes of an element, which are already zero-extended, to a word.
Word word_from_bits(DType t, Word bits) {
  if (is_float(t)) return bits;
  if (t == DType::Bool) return (bits & 255) != 0;
  return static_cast<Word>(wrap(t, static_cast<std::int64_t>(bits)));
}

Word mask_of(DType t) { return itemsize(t) == 8 ? ~Word{0} : (Word{1} << itemsize(t) * 8) - 1; }

// --- elementwise ---------------------------------------------------------------------------------

template <class F>
bool lanes_f32(const Instruction& i, Word* frame, F f) {
  for (int l = 0; l < i.lanes; ++l) {
    auto x = [&](int k) { return std::bit_cast<float>(static_cast<std::uint32_t>(frame[i.src[k] + l])); };
    frame[i.dst + l] = std::bit_cast<std::uint32_t>(static_cast<float>(f(x)));
  }
  return true;
}
template <class F>
bool lanes_int(const Instruction& i, Word* frame, F f) {
  for (int l = 0; l < i.lanes; ++l)
    frame[i.dst + l] = static_cast<Word>(
        wrap(i.to, static_cast<std::int64_t>(f([&](int k) { return frame[i.src[k] + l]; }))));
  return true;
}

// The commonest ops without the way through eval_scalar; the values are the same. False for others.
bool alu_fast(const Instruction& i, Word* frame) {
  if (i.to == f32 && i.from == f32) switch (i.op) {
      case Op::Add:
        return lanes_f32(i, frame, [](auto x) { return x(0) + x(1); });
      case Op::Sub:
        return lanes_f32(i, frame, [](auto x) { return x(0) - x(1); });
      case Op::Mul:
        return lanes_f32(i, frame, [](auto x) { return x(0) * x(1); });
      case Op::MulAcc:
        return lanes_f32(i, frame, [](auto x) { return std::fma(x(0), x(1), x(2)); });
      default:
        return false;
    }
  if (i.to == i64 || i.to == i32) switch (i.op) {
      case Op::Add:
        return lanes_int(i, frame, [](auto x) { return x(0) + x(1); });
      case Op::Mul:
        return lanes_int(i, frame, [](auto x) { return x(0) * x(1); });
      default:
        return false;
    }
  return false;
}

void alu(const Instruction& i, Word* frame) {
  if (alu_fast(i, frame)) return;
  int n = info(i.op).nsrc;
  for (int l = 0; l < i.lanes; ++l) {
    Scalar s[3]{};
    for (int k = 0; k < n; ++k) s[k] = scalar_of(i.from, frame[i.src[k] + l]);
    frame[i.dst + l] = word_of(i.to, eval_scalar(i.op, i.to, i.from, s));
  }
}

// Lane l with lane l + n/2, then n/4, and so on.
void reduce(const Instruction& i, Word* frame) {
  std::vector<Scalar> v(i.lanes);
  for (std::size_t l = 0; l < v.size(); ++l)
    v[l] = scalar_of(i.to, frame[static_cast<std::size_t>(i.src[0]) + l]);
  for (std::size_t half = v.size() / 2; half > 0; half /= 2)
    for (std::size_t l = 0; l < half; ++l) {
      Scalar pair[2] = {v[l], v[l + half]};
      v[l] = eval_scalar(i.op, i.to, i.to, pair);
    }
  frame[i.dst] = word_of(i.to, v[0]);
}

// --- machine -------------------------------------------------------------------------------------

struct Bound {
  std::byte* data;
  std::int64_t bytes;
  bool writable;
  std::vector<bool>* written;  // of a Local: which bytes hold something
  Races* races;                // null: nobody to race with
};

// A work-item: what it needs to go on from where it stopped.
struct Item {
  std::vector<Word> frame;
  std::size_t pc = 0;
  Place place;
};

enum class Stop : std::uint8_t { Done, Barrier, Wmma };

class Machine {
 public:
  Machine(const Code& code, std::span<const Memory> buffers, std::span<const std::int64_t> scalars,
          const Grid& grid)
      : code_(code), scalars_(scalars), grid_(grid) {
    if (buffers.size() < static_cast<std::size_t>(code.buffer_slots) ||
        scalars.size() < static_cast<std::size_t>(code.scalar_slots))
      throw InternalError("[interp] " + code.name + ": too few arguments");
    items_per_group_ = grid.items[0] * grid.items[1] * grid.items[2];
    groups_ = grid.groups[0] * grid.groups[1] * grid.groups[2];
    bool shared = grid.threads * groups_ * items_per_group_ > 1;
    for (const BufferUse& use : code.buffers) {
      if (!use.local) {
        const Memory& m = buffers[static_cast<std::size_t>(use.slot)];
        bound_.push_back({m.data, m.bytes, m.writable, nullptr, shared ? &global_races_ : nullptr});
        continue;
      }
      locals_.push_back({std::vector<std::byte>(static_cast<std::size_t>(use.bytes)),
                         std::vector<bool>(static_cast<std::size_t>(use.bytes))});
      bound_.push_back({nullptr, use.bytes, true, nullptr, items_per_group_ > 1 ? &local_races_ : nullptr});
    }
    std::size_t k = 0;
    for (std::size_t b = 0; b < bound_.size(); ++b)
      if (code.buffers[b].local) {
        bound_[b].data = locals_[k].data.data();
        bound_[b].written = &locals_[k++].written;
      }
  }

  void run() {
    for (std::int64_t thread = 0; thread < grid_.threads; ++thread)
      for (std::int64_t group = 0; group < groups_; ++group) run_group(thread, group);
  }

 private:
  struct LocalMemory {
    std::vector<std::byte> data;
    std::vector<bool> written;
  };

  // All items from barrier to barrier, until all are done.
  void run_group(std::int64_t thread, std::int64_t group) {
    for (LocalMemory& local : locals_) local.written.assign(local.written.size(), false);
    local_races_.clear();
    items_.resize(static_cast<std::size_t>(items_per_group_));
    for (std::int64_t k = 0; k < items_per_group_; ++k)
      begin(items_[static_cast<std::size_t>(k)], thread, group, k);
    auto warp = static_cast<std::size_t>(grid_.warp);
    for (;;) {
      Stop stop = Stop::Done;
      for (std::size_t k = 0; k < items_.size(); k += warp) {
        std::span<Item> some(items_.data() + k, std::min(warp, items_.size() - k));
        Stop now = run_warp(some);
        if (k == 0) stop = now;
        if (now != stop || some[0].pc != items_[0].pc) apart(some[0]);
      }
      if (stop == Stop::Done) return;
      for (Item& item : items_) ++item.place.epoch;
    }
  }

  // To the next barrier or the end. The items of a warp exchange values at each Wmma on the way.
  Stop run_warp(std::span<Item> items) {
    for (;;) {
      Stop stop = Stop::Done;
      for (Item& item : items) {
        Stop now = go(item);
        if (&item == items.data()) stop = now;
        if (now != stop || item.pc != items[0].pc) apart(item);
      }
      if (stop != Stop::Wmma) return stop;
      wmma(items);
    }
  }

  [[noreturn]] void apart(const Item& item) {
    throw InternalError(
        fmt::format("[interp] {}: {} does not reach the Barrier or Wmma that those before it do, or reaches "
                    "one they do not",
                    code_.name, who(item.place)));
  }

  void begin(Item& item, std::int64_t thread, std::int64_t group, std::int64_t k) {
    item.frame = code_.frame;
    item.pc = 0;
    item.place = {thread * groups_ + group, k, 0};
    std::int64_t in_grid[3] = {group % grid_.groups[0], group / grid_.groups[0] % grid_.groups[1],
                               group / grid_.groups[0] / grid_.groups[1]};
    std::int64_t in_group[3] = {k % grid_.items[0], k / grid_.items[0] % grid_.items[1],
                                k / grid_.items[0] / grid_.items[1]};
    for (const Argument& a : code_.arguments) {
      std::int64_t v = 0;
      switch (a.kind) {
        case Argument::Scalar:
          v = scalars_[static_cast<std::size_t>(a.index)];
          break;
        case Argument::Thread:
          v = thread;
          break;
        case Argument::Group:
          v = in_grid[a.index];
          break;
        case Argument::Local:
          v = in_group[a.index];
          break;
      }
      item.frame[static_cast<std::size_t>(a.word)] =
          word_from_bits(a.dtype, static_cast<Word>(v) & mask_of(a.dtype));
    }
  }

  Stop go(Item& item) {
    Word* frame = item.frame.data();
    for (;;) {
      if (item.pc == code_.instructions.size()) return Stop::Done;
      const Instruction& i = code_.instructions[item.pc++];
      switch (i.step) {
        case Step::Alu:
          alu(i, frame);
          break;
        case Step::Bitcast:
          for (int l = 0; l < i.lanes; ++l)
            frame[i.dst + l] = word_from_bits(i.to, frame[i.src[0] + l] & mask_of(i.from));
          break;
        case Step::Where:
          for (int l = 0; l < i.lanes; ++l) frame[i.dst + l] = frame[i.src[frame[i.src[0] + l] ? 1 : 2] + l];
          break;
        case Step::Move:
          std::memmove(frame + i.dst, frame + i.src[0], i.lanes * sizeof(Word));
          break;
        case Step::Splat:
          std::fill_n(frame + i.dst, i.lanes, frame[i.src[0]]);
          break;
        case Step::Reduce:
          reduce(i, frame);
          break;
        case Step::Load:
          load(i, item);
          break;
        case Step::Store:
          store(i, item);
          break;
        case Step::Begin:
          frame[i.dst] = 0;
          if (static_cast<std::int64_t>(frame[i.src[0]]) <= 0) item.pc = static_cast<std::size_t>(i.target);
          break;
        case Step::End: {
          const Instruction& begin = code_.instructions[static_cast<std::size_t>(i.target)];
          if (static_cast<std::int64_t>(++frame[begin.dst]) < static_cast<std::int64_t>(frame[begin.src[0]]))
            item.pc = static_cast<std::size_t>(i.target) + 1;
          break;
        }
        case Step::If:
          if (!frame[i.gate]) item.pc = static_cast<std::size_t>(i.target);
          break;
        case Step::Barrier:
          return Stop::Barrier;
        case Step::Wmma:
          return Stop::Wmma;
      }
    }
  }

  // --- memory ---

  // Where lane l of an access is, or null if it is off.
  std::byte* element(const Instruction& i, const Item& item, const Word* frame, int l) {
    if (i.gate >= 0 && !frame[i.gate + (i.wide_gate ? l : 0)]) return nullptr;
    const Bound& b = bound_[static_cast<std::size_t>(i.buffer)];
    auto index = static_cast<std::int64_t>(frame[i.offset + (i.scattered ? l : 0)]);
    if (!i.scattered) index += l;
    auto size = static_cast<std::int64_t>(itemsize(i.to));
    if (index < 0 || index >= b.bytes / size)
      fail(i, item,
           fmt::format("index {} is outside {}, which holds {} elements", index, buffer_name(i),
                       b.bytes / size));
    return b.data + index * size;
  }

  void load(const Instruction& i, Item& item) {
    Word* frame = item.frame.data();
    const Bound& b = bound_[static_cast<std::size_t>(i.buffer)];
    std::size_t size = itemsize(i.to);
    for (int l = 0; l < i.lanes; ++l) {
      const std::byte* at = element(i, item, frame, l);
      if (!at) {
        frame[i.dst + l] = i.src[0] < 0 ? 0 : frame[i.src[0] + l];
        continue;
      }
      if (b.written)
        for (std::size_t k = 0; k < size; ++k)
          if (!(*b.written)[static_cast<std::size_t>(at - b.data) + k])
            fail(i, item,
                 fmt::format("element {} of {} is read before it is written",
                             static_cast<std::size_t>(at - b.data) / size, buffer_name(i)));
      if (b.races)
        if (const Place* other = b.races->read(reinterpret_cast<std::uintptr_t>(at), item.place))
          race(i, item, at, *other);
      Word bits = 0;
      std::memcpy(&bits, at, size);
      frame[i.dst + l] = word_from_bits(i.to, bits);
    }
  }

  void store(const Instruction& i, Item& item) {
    const Word* frame = item.frame.data();
    const Bound& b = bound_[static_cast<std::size_t>(i.buffer)];
    std::size_t size = itemsize(i.to);
    for (int l = 0; l < i.lanes; ++l) {
      std::byte* at = element(i, item, frame, l);
      if (!at) continue;
      if (!b.writable) fail(i, item, buffer_name(i) + " is read-only");
      if (b.races)
        if (const Place* other = b.races->write(reinterpret_cast<std::uintptr_t>(at), item.place))
          race(i, item, at, *other);
      if (b.written) std::fill_n(b.written->begin() + (at - b.data), size, true);
      std::memcpy(at, &frame[i.src[0] + l], size);
    }
  }

  // As ir/wmma.h says how the matrices lie; sums in the order of k, each step rounded once.
  void wmma(std::span<Item> items) {
    const Instruction& i = code_.instructions[items[0].pc - 1];
    auto m = static_cast<std::size_t>(i.core.m), n = static_cast<std::size_t>(i.core.n),
         k = static_cast<std::size_t>(i.core.k);
    if (items.size() * i.lanes != m * n)
      throw InternalError(fmt::format("{}: a Wmma in a warp of {} items", code_.where(i), items.size()));
    auto matrix = [&](std::int32_t word, DType t, std::size_t size) {
      std::vector<Scalar> all(size);
      std::size_t each = size / items.size();
      for (std::size_t e = 0; e < size; ++e)
        all[e] = scalar_of(t, items[e / each].frame[static_cast<std::size_t>(word) + e % each]);
      return all;
    };
    auto a = matrix(i.src[0], i.core.in, m * k), b = matrix(i.src[1], i.core.in, k * n),
         c = matrix(i.src[2], i.core.out, m * n);
    for (std::size_t row = 0; row < m; ++row)
      for (std::size_t column = 0; column < n; ++column)
        for (std::size_t e = 0; e < k; ++e) {
          Scalar s[3] = {a[row * k + e], b[e * n + column], c[row * n + column]};
          c[row * n + column] = eval_scalar(Op::MulAcc, i.core.out, i.core.out, s);
        }
    for (std::size_t e = 0; e < m * n; ++e)
      items[e / i.lanes].frame[static_cast<std::size_t>(i.dst) + e % i.lanes] = word_of(i.core.out, c[e]);
  }

  // --- errors ---

  std::string buffer_name(const Instruction& i) const {
    const BufferUse& use = code_.buffers[static_cast<std::size_t>(i.buffer)];
    return fmt::format("{} {}", use.local ? "local memory" : "the buffer in slot", use.slot);
  }
  std::string who(const Place& p) const {
    if (items_per_group_ > 1) return fmt::format("item {} of group {}", p.item, p.group);
    return fmt::format("{} {}", grid_.threads > 1 ? "thread" : "group", p.group);
  }
  [[noreturn]] void fail(const Instruction& i, const Item& item, const std::string& what) const {
    throw InternalError(fmt::format("{}: {} (in {})", code_.where(i), what, who(item.place)));
  }
  [[noreturn]] void race(const Instruction& i, const Item& item, const std::byte* at,
                         const Place& other) const {
    const Bound& b = bound_[static_cast<std::size_t>(i.buffer)];
    fail(i, item,
         fmt::format("a race on element {} of {} with {}",
                     static_cast<std::size_t>(at - b.data) / itemsize(i.to), buffer_name(i), who(other)));
  }

  const Code& code_;
  std::span<const std::int64_t> scalars_;
  const Grid& grid_;
  std::int64_t items_per_group_ = 1, groups_ = 1;
  std::vector<Bound> bound_;
  std::vector<LocalMemory> locals_;
  std::vector<Item> items_;
  Races global_races_, local_races_;
};

}  // namespace

std::string Code::where(const Instruction& i) const {
  return fmt::format("[interp] {}: instruction {}, {}", name, i.at, brief(linear.ref().src(i.at)));
}

void execute(const Code& code, std::span<const Memory> buffers, std::span<const std::int64_t> scalars,
             const Grid& grid) {
  Machine(code, buffers, scalars, grid).run();
}

}  // namespace pg::runtime::interp
