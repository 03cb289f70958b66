// The optimisers: what each makes of a value and its gradient.
#include <string>

#include <fmt/format.h>

#include <pangrad/optim.h>

namespace pg::optim {
namespace {

// Places of state, in the order in which constructors add it.
constexpr std::size_t kMomentum = 0;
constexpr std::size_t kAverage = 0, kSquares = 1, kAverageWeight = 2, kSquaresWeight = 3;

void check(const char* name, bool fine, const char* what, double value) {
  if (!fine) throw ValueError(fmt::format("[{}] {} is out of range: {}", name, what, value));
}

// b <- momentum * b + x. Gives what is stepped by.
Tensor with_momentum(Tensor& b, const Tensor& x, double momentum, bool nesterov) {
  b.assign(b * momentum + x);
  return nesterov ? x + b * momentum : b;
}

Tensor norm(const Tensor& x) { return x.square().sum().sqrt(); }

// a / b for norms, and 1 where either is 0.
Tensor ratio(const Tensor& a, const Tensor& b, const Tensor& value) {
  return where(a > 0, where(b > 0, value, 1.0), 1.0);
}

}  // namespace

SGD::SGD(TensorList parameters, const SgdOptions& options)
    : Optimizer("SGD", parameters, options.lr), options_(options) {
  check("SGD", options.momentum >= 0, "momentum", options.momentum);
  check("SGD", options.weight_decay >= 0, "weight_decay", options.weight_decay);
  if (options.momentum > 0) add_state("b");
  begin();
}

Tensor SGD::updated(std::size_t i, const Tensor& value, const Tensor& gradient, const Tensor& lr) {
  Tensor g = options_.weight_decay > 0 ? gradient + value * options_.weight_decay : gradient;
  if (options_.classic) g = g * lr;
  if (options_.momentum > 0) g = with_momentum(state(kMomentum)[i], g, options_.momentum, options_.nesterov);
  return value - (options_.classic ? g : g * lr);
}

LARS::LARS(TensorList parameters, const LarsOptions& options)
    : Optimizer("LARS", parameters, options.lr), options_(options) {
  check("LARS", options.momentum >= 0, "momentum", options.momentum);
  check("LARS", options.weight_decay >= 0, "weight_decay", options.weight_decay);
  check("LARS", options.trust > 0, "trust", options.trust);
  add_state("b");
  begin();
}

Tensor LARS::updated(std::size_t i, const Tensor& value, const Tensor& gradient, const Tensor& lr) {
  Tensor values = norm(value), gradients = norm(gradient);
  Tensor trust =
      ratio(values, gradients, values * options_.trust / (gradients + values * options_.weight_decay));
  Tensor g = gradient + value * options_.weight_decay;
  if (options_.classic) g = g * trust * lr;
  g = with_momentum(state(kMomentum)[i], g, options_.momentum, options_.nesterov);
  return value - (options_.classic ? g : g * trust * lr);
}

Muon::Muon(TensorList parameters, const MuonOptions& options)
    : Optimizer("Muon", parameters, options.lr), options_(options) {
  check("Muon", options.momentum >= 0, "momentum", options.momentum);
  check("Muon", options.weight_decay >= 0, "weight_decay", options.weight_decay);
  check("Muon", options.ns_steps > 0, "ns_steps", options.ns_steps);
  for (const Tensor& parameter : parameters.span()) {
    if (parameter.ndim() == 0) throw ValueError("[Muon] a parameter without axes is no matrix");
  }
  add_state("b");
  begin();
}

Tensor Muon::updated(std::size_t i, const Tensor& value, const Tensor& gradient, const Tensor& lr) {
  Tensor g = with_momentum(state(kMomentum)[i], gradient, options_.momentum, options_.nesterov);
  Shape shape = g.shape();
  g = g.reshape({shape[0], -1}).newton_schulz(options_.ns_steps, options_.ns_coefficients).reshape(shape);
  return value * (1 - lr * options_.weight_decay) - g * lr;
}

MomentOptimizer::MomentOptimizer(const std::string& name, TensorList parameters, const Rate& lr, double b1,
                                 double b2, double eps)
    : Optimizer(name, parameters, lr), b1_(b1), b2_(b2), eps_(eps) {
  check(name.c_str(), b1 >= 0 && b1 < 1, "b1", b1);
  check(name.c_str(), b2 >= 0 && b2 < 1, "b2", b2);
  check(name.c_str(), eps >= 0, "eps", eps);
  add_state("m");
  add_state("v");
  add_scalar("m_weight");
  add_scalar("v_weight");
  begin();
}

// An average that began with zeros lacks weight: divided by the same average of ones it is free of that bias.
void MomentOptimizer::advance() {
  Tensor &average = state(kAverageWeight)[0], &squares = state(kSquaresWeight)[0];
  average.assign(average * b1_ + (1 - b1_));
  squares.assign(squares * b2_ + (1 - b2_));
}

Tensor MomentOptimizer::direction(std::size_t i, const Tensor& gradient) {
  Tensor &m = state(kAverage)[i], &v = state(kSquares)[i];
  m.assign(m * b1_ + gradient * (1 - b1_));
  v.assign(v * b2_ + gradient.square() * (1 - b2_));
  std::string device = m.device();
  Tensor average = m / state(kAverageWeight)[0].to(device), squares = v / state(kSquaresWeight)[0].to(device);
  return average / (squares.sqrt() + eps_);
}

Adam::Adam(TensorList parameters, const AdamOptions& options)
    : MomentOptimizer("Adam", parameters, options.lr, options.b1, options.b2, options.eps) {}

Tensor Adam::updated(std::size_t i, const Tensor& value, const Tensor& gradient, const Tensor& lr) {
  return value - direction(i, gradient) * lr;
}

AdamW::AdamW(TensorList parameters, const AdamWOptions& options)
    : MomentOptimizer("AdamW", parameters, options.lr, options.b1, options.b2, options.eps),
      weight_decay_(options.weight_decay) {
  check("AdamW", weight_decay_ >= 0, "weight_decay", weight_decay_);
}

Tensor AdamW::updated(std::size_t i, const Tensor& value, const Tensor& gradient, const Tensor& lr) {
  return value - (direction(i, gradient) + value * weight_decay_) * lr;
}

LAMB::LAMB(TensorList parameters, const LambOptions& options)
    : MomentOptimizer("LAMB", parameters, options.lr, options.b1, options.b2, options.eps),
      weight_decay_(options.weight_decay) {
  check("LAMB", weight_decay_ >= 0, "weight_decay", weight_decay_);
}

Tensor LAMB::updated(std::size_t i, const Tensor& value, const Tensor& gradient, const Tensor& lr) {
  Tensor step = direction(i, gradient) + value * weight_decay_;
  Tensor values = norm(value), steps = norm(step);
  return value - step * ratio(values, steps, values / steps) * lr;
}

}  // namespace pg::optim
