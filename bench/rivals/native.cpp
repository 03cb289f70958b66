// Times products and convolutions by OpenBLAS and oneDNN on request: a line in, a line of JSON out
// (README.md).
#include <algorithm>
#include <chrono>
#include <functional>
#include <iostream>
#include <memory>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include <cblas.h>
#include <dnnl.hpp>

namespace {

using Work = std::function<void()>;
using Words = std::istringstream;

template <class T>
T next(Words& words, const char* what) {
  T value;
  if (!(words >> value)) throw std::invalid_argument(std::string("no ") + what);
  return value;
}

// Memory as large pages where the system gives them, filled at random.
template <class T>
std::shared_ptr<T[]> numbers(std::int64_t n) {
  std::shared_ptr<T[]> data(static_cast<T*>(std::aligned_alloc(
                                2 << 20, (static_cast<std::size_t>(n) * sizeof(T) + (2 << 20)) >> 21 << 21)),
                            [](T* p) { std::free(p); });
  std::minstd_rand random(1);
  for (std::int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_floating_point_v<T>)
      data[i] = static_cast<T>(static_cast<int>(random() % 2001) - 1000) / 500;
    else
      data[i] = static_cast<T>(random() % 251);
  }
  return data;
}

// --- OpenBLAS

Work blas_matmul(Words& words) {
  if (next<std::string>(words, "dtype") != "f32") throw std::invalid_argument("OpenBLAS: f32 only");
  std::string layout = next<std::string>(words, "layout");
  auto batch = next<std::int64_t>(words, "batch");
  auto m = next<int>(words, "m"), n = next<int>(words, "n"), k = next<int>(words, "k");
  auto a = numbers<float>(batch * m * k), b = numbers<float>(batch * k * n),
       c = numbers<float>(batch * m * n);
  bool ta = layout[0] == 't', tb = layout[1] == 't';
  return [=] {
    for (std::int64_t i = 0; i < batch; ++i)
      cblas_sgemm(CblasRowMajor, ta ? CblasTrans : CblasNoTrans, tb ? CblasTrans : CblasNoTrans, m, n, k, 1,
                  a.get() + i * m * k, ta ? m : k, b.get() + i * k * n, tb ? k : n, 0, c.get() + i * m * n,
                  n);
  };
}

// --- oneDNN

using dnnl::memory;
using Arguments = std::unordered_map<int, memory>;

dnnl::engine& engine() {
  static dnnl::engine e(dnnl::engine::kind::cpu, 0);
  return e;
}
dnnl::stream& stream() {
  static dnnl::stream s(engine());
  return s;
}

memory filled(const memory::desc& desc) {
  memory m(desc, engine());
  if (desc.data_type() == memory::data_type::f32) {
    auto data = numbers<float>(static_cast<std::int64_t>(desc.get_size() / 4));
    std::copy_n(data.get(), desc.get_size() / 4, static_cast<float*>(m.get_data_handle()));
  } else {
    auto data = numbers<std::uint8_t>(static_cast<std::int64_t>(desc.get_size()));
    std::copy_n(data.get(), desc.get_size(), static_cast<std::uint8_t*>(m.get_data_handle()));
  }
  return m;
}

// Runs a primitive on memory in plain layouts; what it wants otherwise is reordered in every call.
class Plain {
 public:
  void input(int name, const memory::desc& plain, const memory::desc& wanted) {
    add(name, plain, wanted, true);
  }
  void output(int name, const memory::desc& plain, const memory::desc& wanted) {
    add(name, plain, wanted, false);
  }
  Work of(const dnnl::primitive& primitive) const {
    return [before = before_, after = after_, arguments = arguments_, primitive] {
      for (const auto& r : before) r();
      primitive.execute(stream(), arguments);
      for (const auto& r : after) r();
      stream().wait();
    };
  }

 private:
  void add(int name, const memory::desc& plain, const memory::desc& wanted, bool input) {
    memory outside = filled(plain);
    if (plain == wanted) {
      arguments_.emplace(name, outside);
      return;
    }
    memory inside(wanted, engine());
    arguments_.emplace(name, inside);
    memory from = input ? outside : inside, to = input ? inside : outside;
    dnnl::reorder reorder(from, to);
    (input ? before_ : after_).push_back([=]() mutable { reorder.execute(stream(), from, to); });
  }
  std::vector<Work> before_, after_;
  Arguments arguments_;
};

Work dnnl_matmul(Words& words) {
  std::string dtype = next<std::string>(words, "dtype"), layout = next<std::string>(words, "layout");
  auto batch = next<std::int64_t>(words, "batch");
  auto m = next<std::int64_t>(words, "m"), n = next<std::int64_t>(words, "n"),
       k = next<std::int64_t>(words, "k");
  using D = memory::data_type;
  D in = dtype == "i8" ? D::s8 : dtype == "bf16" ? D::bf16 : dtype == "f16" ? D::f16 : D::f32;
  D out = dtype == "i8" ? D::s32 : in;
  using T = memory::format_tag;
  memory::desc a({batch, m, k}, in, layout[0] == 't' ? T::acb : T::abc),
      b({batch, k, n}, in, layout[1] == 't' ? T::acb : T::abc), c({batch, m, n}, out, T::abc),
      any({batch, k, n}, in, T::any);
  dnnl::matmul::primitive_desc desc(dnnl::matmul::desc(a, any, c), engine());
  Plain run;
  run.input(DNNL_ARG_SRC, a, desc.src_desc());
  run.input(DNNL_ARG_WEIGHTS, b, desc.weights_desc());
  run.output(DNNL_ARG_DST, c, desc.dst_desc());
  return run.of(dnnl::matmul(desc));
}

Work dnnl_conv(Words& words) {
  std::string way = next<std::string>(words, "way");
  auto n = next<std::int64_t>(words, "batch"), in = next<std::int64_t>(words, "channels"),
       size = next<std::int64_t>(words, "size"), out = next<std::int64_t>(words, "channels"),
       kernel = next<std::int64_t>(words, "kernel"), stride = next<std::int64_t>(words, "stride"),
       padding = next<std::int64_t>(words, "padding"), groups = next<std::int64_t>(words, "groups");
  std::int64_t to = (size + 2 * padding - kernel) / stride + 1;
  using T = memory::format_tag;
  constexpr auto kF32 = memory::data_type::f32;
  memory::dims xs{n, in, size, size}, ys{n, out, to, to}, ws{out, in, kernel, kernel};
  if (groups > 1) ws = {groups, out / groups, in / groups, kernel, kernel};
  memory::desc x(xs, kF32, T::nchw), w(ws, kF32, groups > 1 ? T::goihw : T::oihw), y(ys, kF32, T::nchw);
  memory::desc any_x(xs, kF32, T::any), any_w(ws, kF32, T::any), any_y(ys, kF32, T::any);
  memory::dims strides{stride, stride}, around{padding, padding};
  constexpr auto kDirect = dnnl::algorithm::convolution_direct;
  dnnl::convolution_forward::primitive_desc forward(
      dnnl::convolution_forward::desc(
          way == "forward" ? dnnl::prop_kind::forward_inference : dnnl::prop_kind::forward_training, kDirect,
          any_x, any_w, any_y, strides, around, around),
      engine());
  if (way == "forward") {
    Plain run;
    run.input(DNNL_ARG_SRC, x, forward.src_desc());
    run.input(DNNL_ARG_WEIGHTS, w, forward.weights_desc());
    run.output(DNNL_ARG_DST, y, forward.dst_desc());
    return run.of(dnnl::convolution_forward(forward));
  }
  dnnl::convolution_backward_data::primitive_desc data(
      dnnl::convolution_backward_data::desc(kDirect, any_x, any_w, any_y, strides, around, around), engine(),
      forward);
  dnnl::convolution_backward_weights::primitive_desc weights(
      dnnl::convolution_backward_weights::desc(kDirect, any_x, any_w, any_y, strides, around, around),
      engine(), forward);
  Plain first, second;
  first.input(DNNL_ARG_DIFF_DST, y, data.diff_dst_desc());
  first.input(DNNL_ARG_WEIGHTS, w, data.weights_desc());
  first.output(DNNL_ARG_DIFF_SRC, x, data.diff_src_desc());
  second.input(DNNL_ARG_DIFF_DST, y, weights.diff_dst_desc());
  second.input(DNNL_ARG_SRC, x, weights.src_desc());
  second.output(DNNL_ARG_DIFF_WEIGHTS, w, weights.diff_weights_desc());
  return [a = first.of(dnnl::convolution_backward_data(data)),
          b = second.of(dnnl::convolution_backward_weights(weights))] { a(), b(); };
}

Work make(Words& words) {
  std::string library = next<std::string>(words, "library"), name = next<std::string>(words, "case");
  if (library == "openblas" && name == "matmul") return blas_matmul(words);
  if (library == "onednn" && name == "matmul") return dnnl_matmul(words);
  if (library == "onednn" && name == "conv") return dnnl_conv(words);
  throw std::invalid_argument("no such case: " + library + ' ' + name);
}

constexpr double kSlow = 0.4;  // seconds

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// oneDNN takes OMP_NUM_THREADS of its environment.
std::string info(int threads) {
  openblas_set_num_threads(threads);
  const dnnl_version_t* v = dnnl_version();
  std::string blas = openblas_get_config();  // "OpenBLAS 0.3.21 ..."
  std::istringstream words(blas);
  words >> blas >> blas;
  return R"({"versions": {"openblas": ")" + blas + R"(", "onednn": ")" + std::to_string(v->major) + '.' +
         std::to_string(v->minor) + '.' + std::to_string(v->patch) + R"("}, "threads": )" +
         std::to_string(threads) + R"(, "absent": {}})";
}

}  // namespace

int main() {
  Work work;
  std::string prepared;
  bool slow = false;  // to be run no more often than needed
  for (std::string line; std::getline(std::cin, line);) {
    std::string answer;
    try {
      Words words(line);
      auto verb = next<std::string>(words, "verb");
      if (verb == "info") {
        answer = info(next<int>(words, "number of threads"));
      } else if (verb == "time") {
        auto seconds = next<double>(words, "time");
        std::string rest;
        std::getline(words >> std::ws, rest);
        if (rest != prepared) {
          prepared.clear(), work = {};
          Words case_words(rest);
          work = make(case_words);
          work();
          double start = now();
          work();
          slow = now() - start > kSlow;
          prepared = rest;
        }
        if (!slow) work();
        int runs = 0;
        for (double end = now() + seconds, stop = 0; stop < end && runs < 1000; ++runs) {
          double start = now();
          work();
          stop = now();
          answer += (runs ? ", " : "") + std::to_string(1e6 * (stop - start)) + "e-6";
        }
        answer = "{\"times\": [" + answer + "]}";
      } else {
        throw std::invalid_argument("no such request: " + verb);
      }
    } catch (const std::exception& e) {
      answer = std::string("{\"error\": \"") + e.what() + "\"}";
    }
    std::cout << answer << std::endl;
  }
}
