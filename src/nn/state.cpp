// Parameters and state dictionaries, once a module has been walked.
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <pangrad/state.h>

namespace pg::detail {
namespace {

// Enough names to see what went wrong, when a dictionary of another model has hundreds.
std::string some_of(const std::vector<std::string>& names) {
  constexpr size_t kShown = 5;
  size_t shown = std::min(names.size(), kShown);
  std::string text = fmt::format(
      "\"{}\"", fmt::join(names.begin(), names.begin() + static_cast<ptrdiff_t>(shown), "\", \""));
  if (names.size() > shown) text += fmt::format(" and {} more", names.size() - shown);
  return text;
}

bool is_single(const Shape& shape) { return shape.rank() == 0 || (shape.rank() == 1 && shape[0] == 1); }

// Files disagree about whether a scalar has an axis.
bool fits(const Shape& source, const Shape& target) {
  return source == target || (is_single(source) && is_single(target));
}

void rebind(const std::vector<Tensor*>& tensors, auto&& make) {
  std::unordered_map<const Impl*, Tensor> made;
  for (Tensor* tensor : tensors) {
    auto [entry, fresh] = made.try_emplace(tensor->impl());
    if (fresh) {
      entry->second = make(tensor->detach());
      if (tensor->wants_grad()) entry->second.requires_grad();
    }
  }
  for (Tensor* tensor : tensors) *tensor = made.at(tensor->impl());
}

}  // namespace

NamedTensors only_parameters(const NamedTensors& tensors) {
  NamedTensors found;
  std::unordered_set<const Impl*> seen;
  for (const auto& [name, tensor] : tensors) {
    if (tensor.wants_grad() && seen.insert(tensor.impl()).second) found.emplace_back(name, tensor);
  }
  return found;
}

StateDict as_dict(NamedTensors tensors) {
  StateDict dict;
  for (auto& [name, tensor] : tensors) {
    if (!dict.emplace(name, std::move(tensor)).second)
      throw ValueError(fmt::format("[state_dict] two fields are called \"{}\"", name));
  }
  return dict;
}

void load_state(const NamedTensors& targets, const StateDict& source, const LoadOptions& options) {
  std::vector<std::string> missing, unknown;
  std::unordered_set<std::string_view> names;
  std::vector<std::pair<Tensor, const Tensor*>> writes;
  for (const auto& [name, target] : targets) {
    names.insert(name);
    auto found = source.find(name);
    if (found == source.end()) {
      missing.push_back(name);
      continue;
    }
    Shape from = found->second.shape(), to = target.shape();
    if (!fits(from, to)) {
      throw ShapeError(fmt::format("[load_state_dict] \"{}\" is {} in the dictionary and {} in the module",
                                   name, from.str(), to.str()));
    }
    writes.emplace_back(target, &found->second);
  }
  for (const auto& [name, tensor] : source) {
    if (!names.contains(name)) unknown.push_back(name);
  }
  if (options.strict && !missing.empty())
    throw ValueError(fmt::format("[load_state_dict] the dictionary has no {}", some_of(missing)));
  if (options.strict && !unknown.empty())
    throw ValueError(fmt::format("[load_state_dict] the module has no {}", some_of(unknown)));

  NoGrad no_grad;
  std::vector<Tensor> written;
  for (auto& [target, value] : writes) {
    Tensor fitting = value->detach().reshape(target.shape());
    if (fitting.dtype() != target.dtype()) fitting = fitting.cast(target.dtype());
    target.assign(fitting.to(target.device()));
    written.push_back(target);
  }
  realize(written);
}

void move_tensors(const std::vector<Tensor*>& tensors, std::string_view device) {
  rebind(tensors, [&](const Tensor& tensor) { return tensor.clone(device); });
}

void clone_tensors(const std::vector<Tensor*>& tensors) {
  rebind(tensors, [](const Tensor& tensor) { return tensor.clone(); });
}

}  // namespace pg::detail
