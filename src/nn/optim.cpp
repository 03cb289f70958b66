// What optimisers share: their list of parameters, their state, and the one write of a step.
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "nn/scalars.h"
#include <pangrad/optim.h>
#include <pangrad/scope.h>

namespace pg::optim {
namespace {

// Of state, and what a step is computed in.
DType state_dtype(const Tensor& parameter) { return promote(parameter.dtype(), f32); }

Tensor cast_to(const Tensor& x, DType dtype) { return x.dtype() == dtype ? x : x.cast(dtype); }

}  // namespace

Optimizer::~Optimizer() = default;

void Optimizer::fail(const std::string& problem) const {
  throw ValueError(fmt::format("[{}] {}", name_, problem));
}

Optimizer::Optimizer(std::string name, TensorList parameters, const Rate& lr)
    : name_(std::move(name)), parameters_(parameters.span().begin(), parameters.span().end()) {
  if (parameters_.empty()) fail("there are no parameters");
  std::unordered_set<const detail::Impl*> seen;
  for (size_t i = 0; i < parameters_.size(); i++) {
    const Tensor& parameter = parameters_[i];
    if (!parameter.wants_grad())
      fail(fmt::format("tensor {}, {}, is no parameter: mark it with requires_grad()", i, parameter.str()));
    if (!seen.insert(parameter.impl()).second) fail(fmt::format("parameter {} is in the list twice", i));
  }
  if (lr.tensor().defined()) {
    if (!is_float(lr.tensor().dtype()))
      throw DTypeError(fmt::format("[{}] lr is {}, not a float", name_, lr.tensor().str()));
    if (!(lr.tensor().numel() == 1))
      throw ShapeError(fmt::format("[{}] lr is {}, not one number", name_, lr.tensor().str()));
    lr_ = lr.tensor().reshape({});
  } else {
    if (!(lr.value() >= 0)) fail(fmt::format("lr must not be negative: {}", lr.value()));
    lr_ = nn::stored_scalar(lr.value(), f32, parameters_[0].device());
  }
}

std::size_t Optimizer::add_state(std::string name) {
  std::vector<Tensor> tensors;
  tensors.reserve(parameters_.size());
  for (const Tensor& parameter : parameters_) {
    tensors.push_back(
        Tensor::zeros(parameter.shape(), {.dtype = state_dtype(parameter), .device = parameter.device()})
            .clone());
  }
  state_.emplace_back(std::move(name), std::move(tensors));
  return state_.size() - 1;
}

std::size_t Optimizer::add_scalar(std::string name) {
  state_.emplace_back(std::move(name),
                      std::vector<Tensor>{nn::stored_scalar(0, f32, parameters_[0].device())});
  return state_.size() - 1;
}

void Optimizer::begin() const {
  // Values that are there before the first step make it the same work as all later ones.
  std::vector<Tensor> all = parameters_;
  all.push_back(lr_);
  for (const auto& [name, tensors] : state_) all.insert(all.end(), tensors.begin(), tensors.end());
  realize(all);
}

void Optimizer::zero_grad() const {
  for (const Tensor& parameter : parameters_) parameter.zero_grad();
}

std::vector<Tensor> Optimizer::gradients() const {
  if (!Training::enabled()) throw ValueError("[step] an optimiser steps only in a scope of Training");
  std::vector<Tensor> gradients;
  for (size_t i = 0; i < parameters_.size(); i++) {
    gradients.push_back(parameters_[i].grad());
    if (!gradients.back().defined()) {
      throw ValueError(fmt::format(
          "[step] parameter {} of {}, {}, has no gradient: the loss of backward() must depend on it", i,
          parameters_.size(), parameters_[i].str()));
    }
  }
  return gradients;
}

std::vector<Tensor> Optimizer::schedule_step() {
  std::vector<Tensor> gradients = this->gradients();
  NoGrad no_grad;
  advance();
  for (size_t i = 0; i < parameters_.size(); i++) {
    Tensor& parameter = parameters_[i];
    DType dtype = state_dtype(parameter);
    Tensor rate = cast_to(lr_.to(parameter.device()), dtype);
    Tensor value =
        updated(i, cast_to(parameter.detach(), dtype), cast_to(gradients[i].detach(), dtype), rate);
    parameter.assign(cast_to(value, parameter.dtype()));
  }

  // The gradients stay readable after the step. Computed apart from it they would be computed twice.
  std::vector<Tensor> all = parameters_;
  for (const auto& [name, tensors] : state_) all.insert(all.end(), tensors.begin(), tensors.end());
  all.insert(all.end(), gradients.begin(), gradients.end());
  return all;
}

void Optimizer::step() { realize(schedule_step()); }

void Group::add(std::shared_ptr<Optimizer> optimizer) {
  for (const Tensor& parameter : optimizer->parameters())
    for (const auto& other : optimizers_)
      for (const Tensor& known : other->parameters())
        if (known.impl() == parameter.impl())
          throw ValueError(fmt::format("[Group] {} is a parameter of two optimisers", parameter.str()));
  optimizers_.push_back(std::move(optimizer));
}

void Group::zero_grad() const {
  for (const auto& optimizer : optimizers_) optimizer->zero_grad();
}

void Group::step() {
  // All or none: what is missing is missed before anything is written.
  for (const auto& optimizer : optimizers_) optimizer->gradients();
  std::vector<Tensor> all;
  for (const auto& optimizer : optimizers_)
    for (Tensor& tensor : optimizer->schedule_step()) all.push_back(std::move(tensor));
  realize(all);
}

}  // namespace pg::optim
