// State dictionaries: out of a module and into another, and what is refused.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <pangrad/nn.h>
#include <pangrad/state.h>

namespace pg {
namespace {

struct Net : nn::Module {
  nn::Linear in{3, 4}, out{4, 2, {.bias = false}};
  nn::BatchNorm norm{4};
  void fields(auto&& field) { field("in", in), field("out", out), field("norm", norm); }
};

// What a function throws says this.
template <class Thrown, class Function>
void expect_message(Function&& function, const std::string& message) {
  try {
    function();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Thrown& e) {
    EXPECT_EQ(e.what(), message);
  }
}

TEST(State, LoadsWhatAnotherModuleHolds) {
  Net a, b;
  Tensor weight = b.in.weight;
  load_state_dict(b, state_dict(a));
  for (const auto& [name, tensor] : state_dict(a)) {
    Tensor loaded = state_dict(b).at(name);
    if (tensor.dtype() == f32) {
      EXPECT_EQ(loaded.to_vector<float>(), tensor.to_vector<float>()) << name;
    }
  }
  // Into the storage that was there, which stays what it was.
  EXPECT_EQ(weight.to_vector<float>(), a.in.weight.to_vector<float>());
  EXPECT_EQ(parameters(b).size(), 5u);
  a.in.weight.assign(Tensor::zeros({4, 3}));
  EXPECT_NE(weight.to_vector<float>(), a.in.weight.to_vector<float>());
}

TEST(State, CastsAndTakesScalarsWithAnAxis) {
  nn::BatchNorm norm(2);
  StateDict state = state_dict(norm);
  state.at("num_batches_tracked") = Tensor::of({5});
  state.at("weight") = Tensor::of({1.5, 2.5}, {.dtype = f16});
  load_state_dict(norm, state);
  EXPECT_EQ(norm.num_batches_tracked.item<std::int64_t>(), 5);
  EXPECT_EQ(norm.num_batches_tracked.ndim(), 0);
  EXPECT_EQ(norm.weight.dtype(), f32);
  EXPECT_EQ(norm.weight.to_vector<float>(), (std::vector<float>{1.5, 2.5}));
}

TEST(State, StrictNamesWhatIsMissingOrUnknown) {
  Net net;
  StateDict state = state_dict(net);
  state.erase("in.bias");
  state.erase("out.weight");
  expect_message<ValueError>([&] { load_state_dict(net, state); },
                             "[load_state_dict] the dictionary has no \"in.bias\", \"out.weight\"");
  load_state_dict(net, state, {.strict = false});
  state = state_dict(net);
  for (char c = 'a'; c < 'h'; c++) state.emplace(std::string(1, c), Tensor::ones({1}));
  expect_message<ValueError>(
      [&] { load_state_dict(net, state); },
      "[load_state_dict] the module has no \"a\", \"b\", \"c\", \"d\", \"e\" and 2 more");
  load_state_dict(net, state, {.strict = false});
}

TEST(State, AWrongShapeLoadsNothing) {
  Net net;
  std::vector<float> before = net.in.weight.to_vector<float>();
  StateDict state = state_dict(Net());
  state.at("out.weight") = Tensor::ones({2, 5});
  expect_message<ShapeError>(
      [&] { load_state_dict(net, state); },
      "[load_state_dict] \"out.weight\" is (2, 5) in the dictionary and (2, 4) in the module");
  EXPECT_THROW(load_state_dict(net, state, {.strict = false}), ShapeError);
  EXPECT_EQ(net.in.weight.to_vector<float>(), before);
}

}  // namespace
}  // namespace pg
