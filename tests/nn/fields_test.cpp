// Walking modules: names, order, what counts as a parameter, what copies share.
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include <pangrad/nn.h>
#include <pangrad/state.h>

namespace pg {
namespace {

struct Scale : nn::Module {
  Tensor factor = nn::parameter(Tensor::ones({2}));
  Tensor seen = Tensor::zeros({2});
  void fields(auto&& field) { field("factor", factor), field("seen", seen); }
};

struct Model : nn::Module {
  Scale first;
  std::vector<Scale> blocks{2};
  std::optional<Scale> maybe;
  std::unique_ptr<Scale> owned;
  std::map<std::string, Tensor> named{{"b", Tensor::ones({1})}, {"a", Tensor::ones({1})}};
  std::tuple<Tensor, Scale> pair{Tensor::ones({3}), Scale()};
  std::array<Tensor, 2> two{Tensor::ones({1}), Tensor()};
  int depth = 3;
  std::string label = "model";
  void fields(auto&& field) {
    field("first", first), field("blocks", blocks), field("maybe", maybe), field("owned", owned);
    field("named", named), field("pair", pair), field("two", two), field("depth", depth),
        field("label", label);
  }
};

std::vector<std::string> names(const NamedTensors& tensors) {
  std::vector<std::string> found;
  for (const auto& [name, tensor] : tensors) found.push_back(name);
  return found;
}

TEST(Fields, NamesFollowTheOrderOfFieldsThroughContainers) {
  Model model;
  EXPECT_EQ(names(named_tensors(model)),
            (std::vector<std::string>{"first.factor", "first.seen", "blocks.0.factor", "blocks.0.seen",
                                      "blocks.1.factor", "blocks.1.seen", "named.a", "named.b", "pair.0",
                                      "pair.1.factor", "pair.1.seen", "two.0"}));
  model.maybe.emplace();
  model.owned = std::make_unique<Scale>();
  EXPECT_EQ(named_tensors(model).size(), 16u);
}

TEST(Fields, AParameterIsWhatIsMarked) {
  Scale scale;
  EXPECT_EQ(names(named_parameters(scale)), std::vector<std::string>{"factor"});
  scale.factor.requires_grad(false);
  EXPECT_TRUE(parameters(scale).empty());
}

TEST(Fields, AParameterInTwoPlacesIsOne) {
  std::vector<Scale> tied(2);
  tied[1].factor = tied[0].factor;
  EXPECT_EQ(parameters(tied).size(), 1u);
  EXPECT_EQ(names(named_parameters(tied)), std::vector<std::string>{"0.factor"});
  EXPECT_EQ(state_dict(tied).size(), 4u);
}

struct Twice {
  Tensor a = Tensor::ones({1});
  void fields(auto&& field) { field("a", a), field("a", a); }
};

TEST(Fields, TwoFieldsOfOneNameAreRefused) { EXPECT_THROW(state_dict(Twice()), ValueError); }

TEST(Fields, AWalkMayRebind) {
  Scale scale;
  walk_tensors(scale, [](const std::string&, Tensor& tensor) { tensor = Tensor::full({1}, 5.0); });
  EXPECT_EQ(scale.seen.to_vector<float>(), std::vector<float>{5});
}

TEST(Fields, CopiesShareAndClonesDoNot) {
  Scale scale, copy = scale, other = clone(scale);
  scale.factor.assign(Tensor::full({2}, 7.0));
  EXPECT_EQ(copy.factor.to_vector<float>(), (std::vector<float>{7, 7}));
  EXPECT_EQ(other.factor.to_vector<float>(), (std::vector<float>{1, 1}));
  EXPECT_EQ(parameters(other).size(), 1u);

  std::vector<Scale> tied(2);
  tied[1].factor = tied[0].factor;
  EXPECT_EQ(parameters(clone(tied[0])).size(), 1u);
}

TEST(Fields, MovingToADeviceKeepsMarksAndTies) {
  std::vector<Scale> tied(2);
  tied[1].factor = tied[0].factor;
  move_to(tied, "CPU:1");
  ASSERT_EQ(parameters(tied).size(), 1u);
  EXPECT_EQ(parameters(tied)[0].device(), "CPU:1");
  EXPECT_EQ(tied[1].seen.device(), "CPU:1");
  EXPECT_EQ(tied[0].factor.to_vector<float>(), (std::vector<float>{1, 1}));
}

}  // namespace
}  // namespace pg
