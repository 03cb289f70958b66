// Optimisers. Each takes the parameters once, and after each backward() writes all of them in one step:
//
//   optim::AdamW opt(parameters(net), {.lr = 3e-4});
//   Training on;
//   opt.zero_grad();
//   loss(net).backward();
//   opt.step();
//
// Parameters keep their storage. State is kept in f32 at least; it and the learning rate are fields, so that
// state_dict(opt) is a checkpoint. The learning rate is a tensor, which a program may assign to at any time,
// also between replays of a captured step. Copies of an optimiser share everything.
//
// Constructors compute the parameters' first values. They throw ValueError for an empty list, for a tensor
// that is no parameter (requires_grad) or stands in it twice, and for settings outside their domain.
#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <pangrad/error.h>
#include <pangrad/fields.h>
#include <pangrad/tensor.h>

namespace pg::optim {

/// A learning rate: a number, which becomes a tensor, or a tensor of one float, which the optimiser shares.
class Rate {
 public:
  template <Arithmetic T>
  Rate(T value) : value_(static_cast<double>(value)) {}
  Rate(Tensor tensor) : tensor_(std::move(tensor)) {}
  /// Holds nothing if it was a number.
  const Tensor& tensor() const { return tensor_; }
  double value() const { return value_; }

 private:
  Tensor tensor_;
  double value_ = 0;
};

/// What all optimisers share; to write another, derive from it and say what updated() is.
class PG_API Optimizer {
 public:
  virtual ~Optimizer();
  /// Forgets the gradients of all parameters.
  void zero_grad() const;
  /// Writes all parameters, and computes them, the state and the gradients together. Throws ValueError
  /// outside a Training scope, or if a parameter has no gradient; nothing is written then.
  void step();
  /// As step(), but computes nothing. Returns what is to be realized together.
  std::vector<Tensor> schedule_step();
  const std::vector<Tensor>& parameters() const { return parameters_; }
  /// The gradients of all parameters. Throws ValueError outside a Training scope, or if one has none.
  std::vector<Tensor> gradients() const;
  /// One f32 without axes: opt.lr().assign(1e-4).
  Tensor lr() const { return lr_; }
  void fields(auto&& field) {
    field("lr", lr_);
    for (auto& [name, tensors] : state_) field(name, tensors);
  }

 protected:
  Optimizer(std::string name, TensorList parameters, const Rate& lr);
  Optimizer(const Optimizer&) = default;
  Optimizer(Optimizer&&) = default;
  Optimizer& operator=(const Optimizer&) = default;
  Optimizer& operator=(Optimizer&&) = default;

  /// Adds state, in constructors: zeros for each parameter, or one scalar 0. Gives its place for state().
  std::size_t add_state(std::string name);
  std::size_t add_scalar(std::string name);
  std::vector<Tensor>& state(std::size_t place) { return state_[place].second; }
  /// To be called at the end of a constructor.
  void begin() const;

  /// Called once a step, before the parameters.
  virtual void advance() {}
  /// The new value of parameter i. All arguments are f32 (f64 for parameters of f64), without history.
  virtual Tensor updated(std::size_t i, const Tensor& value, const Tensor& gradient, const Tensor& lr) = 0;

 private:
  [[noreturn]] void fail(const std::string& problem) const;

  std::string name_;
  std::vector<Tensor> parameters_;
  std::vector<std::pair<std::string, std::vector<Tensor>>> state_;
  Tensor lr_;
};

struct SgdOptions {
  Rate lr = 0.001;
  double momentum = 0;
  double weight_decay = 0;  ///< added to the gradient, times the value
  bool nesterov = false;
  bool classic = false;  ///< momentum of steps (gradients times rate) rather than of gradients
};
/// value -= lr * b, where b <- momentum * b + gradient.
class PG_API SGD : public Optimizer {
 public:
  explicit SGD(TensorList parameters, const SgdOptions& options = {});

 private:
  Tensor updated(std::size_t i, const Tensor& value, const Tensor& gradient, const Tensor& lr) override;
  SgdOptions options_;
};

struct LarsOptions {
  Rate lr = 0.001;
  double momentum = 0.9;
  double weight_decay = 1e-4;
  bool nesterov = false;
  bool classic = true;
  double trust = 0.001;
};
/// SGD with steps scaled by trust * |value| / (|gradient| + decay * |value|) (You et al. 2017).
class PG_API LARS : public Optimizer {
 public:
  explicit LARS(TensorList parameters, const LarsOptions& options = {});

 private:
  Tensor updated(std::size_t i, const Tensor& value, const Tensor& gradient, const Tensor& lr) override;
  LarsOptions options_;
};

struct MuonOptions {
  Rate lr = 0.001;
  double momentum = 0.95;
  double weight_decay = 0.1;  ///< of the value, beside the gradient
  int ns_steps = 5;
  std::vector<double> ns_coefficients = {3.4445, -4.775, 2.0315};
  bool nesterov = true;
};
/// Momentum made nearly orthogonal by Newton-Schulz iterations; axes but the first are flattened (Jordan et
/// al. 2024). ValueError for parameters without axes.
class PG_API Muon : public Optimizer {
 public:
  explicit Muon(TensorList parameters, const MuonOptions& options = {});

 private:
  Tensor updated(std::size_t i, const Tensor& value, const Tensor& gradient, const Tensor& lr) override;
  MuonOptions options_;
};

/// Averages of gradients (b1) and of their squares (b2), as the optimisers below keep.
class PG_API MomentOptimizer : public Optimizer {
 protected:
  MomentOptimizer(const std::string& name, TensorList parameters, const Rate& lr, double b1, double b2,
                  double eps);
  void advance() override;
  /// average / (sqrt(average of squares) + eps), both freed of their bias towards 0.
  Tensor direction(std::size_t i, const Tensor& gradient);

 private:
  double b1_, b2_, eps_;
};

struct AdamOptions {
  Rate lr = 0.001;
  double b1 = 0.9, b2 = 0.999;
  double eps = 1e-8;
};
/// Kingma and Ba 2014.
class PG_API Adam : public MomentOptimizer {
 public:
  explicit Adam(TensorList parameters, const AdamOptions& options = {});

 private:
  Tensor updated(std::size_t i, const Tensor& value, const Tensor& gradient, const Tensor& lr) override;
};

struct AdamWOptions {
  Rate lr = 0.001;
  double b1 = 0.9, b2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.01;  ///< of the value, beside the gradient
};
/// Loshchilov and Hutter 2017.
class PG_API AdamW : public MomentOptimizer {
 public:
  explicit AdamW(TensorList parameters, const AdamWOptions& options = {});

 private:
  Tensor updated(std::size_t i, const Tensor& value, const Tensor& gradient, const Tensor& lr) override;
  double weight_decay_;
};

struct LambOptions {
  Rate lr = 0.001;
  double b1 = 0.9, b2 = 0.999;
  double eps = 1e-6;
  double weight_decay = 0;
};
/// AdamW with steps scaled by |value| / |step| (You et al. 2019).
class PG_API LAMB : public MomentOptimizer {
 public:
  explicit LAMB(TensorList parameters, const LambOptions& options = {});

 private:
  Tensor updated(std::size_t i, const Tensor& value, const Tensor& gradient, const Tensor& lr) override;
  double weight_decay_;
};

/// Parameters in groups, each with an optimiser and settings of its own, that step together:
///
///   optim::Group opt(optim::AdamW(weights, {.weight_decay = 0.1}), optim::AdamW(others, {.weight_decay =
///   0}));
class PG_API Group {
 public:
  /// Throws ValueError if two of them have a parameter in common.
  template <std::derived_from<Optimizer>... O>
  explicit Group(O... optimizers) {
    (add(std::make_shared<O>(std::move(optimizers))), ...);
  }
  void zero_grad() const;
  /// Writes the parameters of all groups. Throws ValueError as Optimizer::step; nothing is written then.
  void step();
  std::size_t size() const { return optimizers_.size(); }
  Optimizer& operator[](std::size_t i) { return *optimizers_.at(i); }
  void fields(auto&& field) {
    for (std::size_t i = 0; i < optimizers_.size(); ++i) field(std::to_string(i), *optimizers_[i]);
  }

 private:
  void add(std::shared_ptr<Optimizer> optimizer);
  std::vector<std::shared_ptr<Optimizer>> optimizers_;
};

}  // namespace pg::optim
