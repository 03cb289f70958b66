// What a module (or anything with fields) consists of: its parameters, its state as a dictionary of names,
// and the way back from such a dictionary into a module. A parameter is a tensor that is marked by
// requires_grad(), as layers do with theirs; the other tensors, running statistics for one, are buffers.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pangrad/fields.h>
#include <pangrad/tensor.h>

namespace pg {

/// Tensors by dotted name. The tensors are handles: they share storage with the module they come from.
using StateDict = std::map<std::string, Tensor, std::less<>>;
/// The same in the order of the fields.
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

struct LoadOptions {
  /// Refuses names that only one side has. Else they are left alone.
  bool strict = true;
};

namespace detail {
PG_API NamedTensors only_parameters(const NamedTensors& tensors);
PG_API StateDict as_dict(NamedTensors tensors);
PG_API void load_state(const NamedTensors& targets, const StateDict& source, const LoadOptions& options);
PG_API void move_tensors(const std::vector<Tensor*>& tensors, std::string_view device);
PG_API void clone_tensors(const std::vector<Tensor*>& tensors);

template <class T>
std::vector<Tensor*> tensor_slots(T& value) {
  std::vector<Tensor*> slots;
  walk_tensors(value, [&](const std::string&, Tensor& tensor) {
    if (tensor.defined()) slots.push_back(&tensor);
  });
  return slots;
}
}  // namespace detail

/// All tensors of a module with their names, parameters and buffers, without those that hold nothing.
template <class T>
NamedTensors named_tensors(const T& module) {
  NamedTensors found;
  walk_tensors(module, [&](const std::string& name, const Tensor& tensor) {
    if (tensor.defined()) found.emplace_back(name, tensor);
  });
  return found;
}

/// The parameters with their names; one that stands in several places, under its first.
template <class T>
NamedTensors named_parameters(const T& module) {
  return detail::only_parameters(named_tensors(module));
}

/// The parameters, each once: what an optimiser takes.
template <class T>
std::vector<Tensor> parameters(const T& module) {
  std::vector<Tensor> found;
  for (auto& [name, tensor] : named_parameters(module)) found.push_back(std::move(tensor));
  return found;
}

/// All tensors by name. Throws ValueError if two have the same one.
template <class T>
StateDict state_dict(const T& module) {
  return detail::as_dict(named_tensors(module));
}

/// Writes a dictionary into the tensors of a module, cast to their dtype and copied to their device. The
/// module keeps its storage, so optimisers and captures that know it stay valid. All is checked first: on a
/// ValueError (a name that only one side has, unless not strict) or ShapeError nothing has changed.
template <class T>
void load_state_dict(T& module, const StateDict& state, const LoadOptions& options = {}) {
  detail::load_state(named_tensors(module), state, options);
}

/// Moves a module to a device: its tensors are rebound to copies there, which keep their marks. Tensors that
/// it shared with itself stay shared; with other modules they no longer are.
template <class T>
void move_to(T& module, std::string_view device) {
  detail::move_tensors(detail::tensor_slots(module), device);
}

/// A module with storage of its own: copying a module copies only its handles.
template <HasFields T>
T clone(const T& module) {
  T copy = module;
  detail::clone_tensors(detail::tensor_slots(copy));
  return copy;
}

}  // namespace pg
