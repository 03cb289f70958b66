// Capturing functions of tensors: pg::jit(f) is called like f. The first call runs f, the second runs it and
// records what it computed, later ones run the recording on the tensors they are given, without f.
//
// A recording is only used where it is faithful. It holds for one combination of shapes, dtypes and devices
// of the tensor arguments and of values of the others: another combination is recorded anew. Tensors that f
// reaches otherwise (parameters, data, optimiser state) are looked up at each call, so what was assigned to
// them in between is seen, and what f writes to them is written again; random numbers go on. What f does
// besides computing tensors (printing, counting) happens in the first two calls only. Reading a value (item,
// to_vector, data-dependent branches) while recording is a CaptureError.
#pragma once

#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <pangrad/tensor.h>

namespace pg {

namespace detail {

/// The recordings of one function, whatever its signature: what jit<F> is made of.
class PG_API Captures {
 public:
  using Body = std::function<std::vector<Tensor>()>;
  Captures();
  ~Captures();
  Captures(Captures&&) noexcept;
  Captures& operator=(Captures&&) noexcept;
  /// Runs, records or replays. `key` tells apart what is not a tensor.
  std::vector<Tensor> run(std::span<const Tensor> inputs, const std::string& key, const Body& body);
  /// How many recordings there are.
  std::size_t size() const;
  void clear();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

template <class T>
struct is_tuple : std::false_type {};
template <class... T>
struct is_tuple<std::tuple<T...>> : std::true_type {};
template <class A, class B>
struct is_tuple<std::pair<A, B>> : std::true_type {};

// Sorts an argument: tensors to the inputs, everything else to the key.
template <class A>
void jit_argument(const A& a, std::vector<Tensor>& inputs, std::string& key) {
  using T = std::remove_cvref_t<A>;
  if constexpr (std::is_base_of_v<Tensor, T>) {
    inputs.push_back(a);
    key += 't';
  } else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
    key += 'n';
    key.append(reinterpret_cast<const char*>(&a), sizeof a);
  } else if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    std::string_view text(a);
    key += 's' + std::to_string(text.size()) + ':';
    key += text;
  } else if constexpr (requires { a.begin(), a.end(); }) {
    key += '[';
    for (const auto& item : a) jit_argument(item, inputs, key);
    key += ']';
  } else if constexpr (is_tuple<T>::value) {
    key += '(';
    std::apply([&](const auto&... item) { (jit_argument(item, inputs, key), ...); }, a);
    key += ')';
  } else {
    static_assert(sizeof(T) == 0,
                  "jit: an argument is a tensor, a number, an enum, text, or a container of these; a module "
                  "is captured by reference");
  }
}

template <class R>
void jit_result(const R& r, std::vector<Tensor>& out) {
  if constexpr (std::is_base_of_v<Tensor, R>) {
    out.push_back(r);
  } else if constexpr (is_tuple<R>::value) {
    std::apply([&](const auto&... item) { (jit_result(item, out), ...); }, r);
  } else {
    static_assert(std::is_same_v<R, std::vector<Tensor>>,
                  "jit: a function returns void, a Tensor, a vector of them, or a tuple or pair of these");
    out.insert(out.end(), r.begin(), r.end());
  }
}

template <class R>
R jit_unpack(std::span<Tensor>& from) {
  if constexpr (std::is_base_of_v<Tensor, R>) {
    R r = std::move(from.front());
    from = from.subspan(1);
    return r;
  } else if constexpr (is_tuple<R>::value) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return R{jit_unpack<std::tuple_element_t<I, R>>(from)...};
    }(std::make_index_sequence<std::tuple_size_v<R>>{});
  } else {
    R r(from.begin(), from.end());
    from = {};
    return r;
  }
}

}  // namespace detail

/// A function that is recorded; made by jit(). Calls from several threads take turns by the caller's care.
template <class F>
class Jit {
 public:
  explicit Jit(F f) : f_(std::move(f)) {}

  /// As f. Throws what f throws, and CaptureError where f cannot be recorded faithfully.
  template <class... Args>
  auto operator()(Args&&... args) {
    using R = std::invoke_result_t<F&, Args...>;
    std::vector<Tensor> inputs;
    std::string key;
    (detail::jit_argument(args, inputs, key), ...);
    auto body = [&] {
      std::vector<Tensor> out;
      if constexpr (std::is_void_v<R>)
        f_(args...);
      else
        detail::jit_result<std::remove_cvref_t<R>>(f_(args...), out);
      return out;
    };
    std::vector<Tensor> out = captures_.run(inputs, key, body);
    if constexpr (!std::is_void_v<R>) {
      std::span<Tensor> from(out);
      return detail::jit_unpack<std::remove_cvref_t<R>>(from);
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
