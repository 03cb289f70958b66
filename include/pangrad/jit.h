// Capturing functions of tensors: pg::jit(f) is called like f. The first call runs f, the second runs it and
// records what it computed, later ones run the recording on the tensors they are given, without f.
//
// A recording is only used where it is faithful. It holds for one combination of shapes, dtypes and devices
// of the tensor arguments, of which of them share storage, and of values of the others: another combination
// is recorded anew. Symbolic sizes and positions (a Dim as argument, the shape of a tensor) may be bound to
// other values without that. Tensors that f reaches otherwise (parameters, data, optimiser state) are looked
// up at each call, so what was assigned to them in between is seen, and what f writes to them is written
// again; random numbers go on. Where such a handle was rebound or destroyed since, where a mark or a gradient
// is there that was not or the other way round, or another seed was set, f is recorded anew.
//
// What cannot be replayed is a CaptureError of the call that records: reading a value (item, to_vector, the
// value of a symbolic size) inside f, rebinding a tensor inside f that is older than the call (write to it
// instead), seeding, and gradients that would flow out of f into what its arguments were computed from.
//
// The rest of the program is not seen: numbers and flags that f reaches by reference, and data of the host
// that it makes tensors of, stay what they were when it was recorded (pass them as arguments), and what f
// does besides computing tensors (printing, counting) happens in the first two calls only. What f returns has
// no history: backward() belongs inside.
#pragma once

#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include <pangrad/fields.h>
#include <pangrad/tensor.h>

namespace pg {

namespace detail {

/// What a call was given: its tensors, the handles they came in, symbolic numbers, and a text that tells
/// apart everything else.
struct JitCall {
  std::vector<Tensor> inputs;
  std::vector<const Tensor*> handles;
  std::vector<Dim> dims;
  std::string key;
};
/// What it returned: tensors, and the lengths of the vectors among them.
struct JitResults {
  std::vector<Tensor> tensors;
  std::vector<std::size_t> lengths;
};

/// The recordings of one function, whatever its signature: what jit<F> is made of.
class PG_API Captures {
 public:
  using Body = std::function<JitResults()>;
  Captures();
  ~Captures();
  Captures(Captures&&) noexcept;
  Captures& operator=(Captures&&) noexcept;
  /// Runs, records or replays.
  JitResults run(const JitCall& call, const Body& body);
  /// How many recordings there are.
  std::size_t size() const;
  void clear();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

template <class T>
struct IsTensorTuple : std::false_type {};
template <class... T>
struct IsTensorTuple<std::tuple<T...>> : std::true_type {};
template <class A, class B>
struct IsTensorTuple<std::pair<A, B>> : std::true_type {};

// Sorts an argument: tensors to the inputs, everything else to the key.
template <class A>
void jit_argument(const A& a, JitCall& call) {
  using T = std::remove_cvref_t<A>;
  std::string& key = call.key;
  if constexpr (std::is_base_of_v<Tensor, T>) {
    key += a.defined() ? 't' : 'e';
    if (!a.defined()) return;
    call.inputs.push_back(a);
    call.handles.push_back(&a);
  } else if constexpr (std::is_same_v<T, Dim>) {
    if (a.is_symbolic()) {
      key += 'd';
      call.dims.push_back(a);
    } else {
      key += 'i' + a.str() + ';';
    }
  } else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
    key += typeid(T).name();
    key.append(reinterpret_cast<const char*>(&a), sizeof a);
  } else if constexpr (IsText<T>) {
    std::string_view text(a);
    key += 's' + std::to_string(text.size()) + ':';
    key += text;
  } else if constexpr (HasFields<T>) {
    key += typeid(T).name();
    walk_tensors(a, [&](const std::string& name, const Tensor& tensor) {
      key += name + '=';
      jit_argument(tensor, call);
    });
    key += '.';
  } else if constexpr (IsTensorTuple<T>::value) {
    key += '(';
    std::apply([&](const auto&... item) { (jit_argument(item, call), ...); }, a);
    key += ')';
  } else if constexpr (requires { a.begin(), a.end(); }) {
    key += '[';
    for (auto&& item : a) {
      static_assert(std::is_lvalue_reference_v<decltype(item)> || !std::is_class_v<decltype(item)>,
                    "jit: a container must hold its tensors");
      jit_argument(item, call);
    }
    key += ']';
  } else {
    static_assert(sizeof(T) == 0,
                  "jit: an argument is a tensor, a Dim, a number, an enum, text, a type with fields(), or a "
                  "container of these");
  }
}

// Tensors are passed as handles of the call's own, so that what the body reads as argument is not mistaken
// for a handle that it captured.
template <class A>
using JitPassed = std::conditional_t<std::is_base_of_v<Tensor, std::remove_cvref_t<A>>, Tensor, A&&>;
template <class A>
using JitForward = std::conditional_t<
    !std::is_base_of_v<Tensor, std::remove_cvref_t<A>>, A&&,
    std::conditional_t<std::is_const_v<std::remove_reference_t<A>>, const Tensor&,
                       std::conditional_t<std::is_lvalue_reference_v<A>, Tensor&, Tensor&&>>>;

// Results are plain tensors, whatever kind of tensor a function returns.
template <class R>
struct JitResult {
  static_assert(std::is_same_v<R, std::vector<Tensor>>,
                "jit: a function returns void, a Tensor, a vector of them, or a tuple or pair of these");
  using type = R;
  static void put(const R& r, JitResults& out) {
    out.lengths.push_back(r.size());
    out.tensors.insert(out.tensors.end(), r.begin(), r.end());
  }
  static R take(std::span<Tensor>& from, std::span<const std::size_t>& lengths) {
    R r(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(lengths.front()));
    from = from.subspan(lengths.front());
    lengths = lengths.subspan(1);
    return r;
  }
};
template <class R>
  requires std::is_base_of_v<Tensor, R>
struct JitResult<R> {
  using type = Tensor;
  static void put(const Tensor& r, JitResults& out) { out.tensors.push_back(r); }
  static Tensor take(std::span<Tensor>& from, std::span<const std::size_t>&) {
    Tensor r = std::move(from.front());
    from = from.subspan(1);
    return r;
  }
};
template <template <class...> class Tuple, class... T>
  requires(IsTensorTuple<Tuple<T...>>::value)
struct JitResult<Tuple<T...>> {
  using type = Tuple<typename JitResult<std::remove_cvref_t<T>>::type...>;
  static void put(const Tuple<T...>& r, JitResults& out) {
    std::apply([&](const auto&... item) { (JitResult<std::remove_cvref_t<T>>::put(item, out), ...); }, r);
  }
  static type take(std::span<Tensor>& from, std::span<const std::size_t>& lengths) {
    return type{JitResult<std::remove_cvref_t<T>>::take(from, lengths)...};
  }
};

}  // namespace detail

/// A function that is recorded; made by jit(). Calls from several threads take turns by the caller's care.
template <class F>
class Jit {
 public:
  explicit Jit(F f) : f_(std::move(f)) {}

  /// As f. Throws what f throws, and CaptureError where f cannot be recorded faithfully.
  template <class... Args>
  auto operator()(Args&&... args) {
    using R = std::invoke_result_t<F&, detail::JitForward<Args&&>...>;
    using Result = detail::JitResult<std::remove_cvref_t<std::conditional_t<std::is_void_v<R>, Tensor, R>>>;
    std::tuple<detail::JitPassed<Args&&>...> passed(std::forward<Args>(args)...);
    detail::JitCall call;
    call.key = typeid(R).name();
    std::apply([&](const auto&... items) { (detail::jit_argument(items, call), ...); }, passed);
    auto body = [&] {
      detail::JitResults out;
      std::apply(
          [&](auto&... items) {
            if constexpr (std::is_void_v<R>)
              f_(static_cast<detail::JitForward<Args&&>>(items)...);
            else
              Result::put(f_(static_cast<detail::JitForward<Args&&>>(items)...), out);
          },
          passed);
      return out;
    };
    detail::JitResults out = captures_.run(call, body);
    if constexpr (!std::is_void_v<R>) {
      std::span<Tensor> from(out.tensors);
      std::span<const std::size_t> lengths(out.lengths);
      return Result::take(from, lengths);
    }
  }

  /// How many recordings there are, and a way to forget them.
  std::size_t captures() const { return captures_.size(); }
  void clear() { captures_.clear(); }

 private:
  F f_;
  detail::Captures captures_;
};

/// A recorded version of f: auto step = pg::jit([&](const Tensor& x) { ... });
template <class F>
Jit<std::decay_t<F>> jit(F&& f) {
  return Jit<std::decay_t<F>>(std::forward<F>(f));
}

}  // namespace pg
