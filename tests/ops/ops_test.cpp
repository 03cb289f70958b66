// Every case of the operator table: its graph by the evaluator against golden data, its value on each device
// against the evaluator, its gradients against finite differences.
#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include <gtest/gtest.h>

#include "eval/compare.h"
#include "ops/golden_file.h"
#include "ops/nodes.h"
#include "ops/op_table.h"

namespace pg::ops {

// How GoogleTest shows a parameter.
void PrintTo(const OpCase* c, std::ostream* out) { *out << c->name; }

namespace {

using eval::Array;

std::vector<Array> arrays_of(const OpCase& c) {
  std::vector<Array> out;
  for (std::size_t i = 0; i < c.in.size(); ++i) out.push_back(make_input(c.name, i, c.in[i]));
  return out;
}

Args inputs_of(const std::vector<Array>& arrays) {
  Args x;
  for (const Array& a : arrays) x.push_back(input(static_cast<int>(x.size()), a.dtype, a.dims));
  return x;
}

std::string identifier(std::string_view name) {
  std::string s(name);
  std::replace_if(
      s.begin(), s.end(), [](char ch) { return !std::isalnum(static_cast<unsigned char>(ch)); }, '_');
  return s;
}

std::vector<const OpCase*> cases(bool differentiable) {
  std::vector<const OpCase*> out;
  for (const OpCase& c : op_table())
    if (c.differentiable || !differentiable) out.push_back(&c);
  return out;
}

// --- golden data
// -----------------------------------------------------------------------------------------------------

const std::map<std::string, Golden>& golden() {
  static const auto data = read_golden("ops.txt");
  return data;
}

std::uint64_t digest_of(const std::vector<Array>& arrays) {
  std::uint64_t h = 0xcbf29ce484222325;
  for (const Array& a : arrays)
    for (std::uint8_t byte : a.bytes()) h = (h ^ byte) * 0x100000001b3;
  return h;
}

class GoldenData : public testing::TestWithParam<const OpCase*> {};

TEST_P(GoldenData, AgreesWithTheGraph) {
  const OpCase& c = *GetParam();
  const Golden& want = golden().at(c.name);
  std::vector<Array> arrays = arrays_of(c);
  ASSERT_EQ(digest_of(arrays), want.digest) << "the inputs are not those that tools/golden_ops.py names";
  Tensor y = c.build(inputs_of(arrays));
  EXPECT_EQ(difference(evaluate(y, arrays), want.value,
                       eval::tolerance(want.value.dtype, c.golden_steps, c.golden_scale)),
            "");
}

std::vector<const OpCase*> with_golden() {
  std::vector<const OpCase*> out;
  for (const OpCase& c : op_table())
    if (golden().contains(c.name)) out.push_back(&c);
  return out;
}

auto case_name = [](const auto& info) { return identifier(info.param->name); };
INSTANTIATE_TEST_SUITE_P(Ops, GoldenData, testing::ValuesIn(with_golden()), case_name);

TEST(GoldenData, EachLineIsACase) {
  EXPECT_GT(golden().size(), 800u);
  std::map<std::string, int> known;
  for (const OpCase& c : op_table()) EXPECT_EQ(++known[c.name], 1) << c.name << " is there twice";
  for (auto& [name, value] : golden()) EXPECT_TRUE(known.contains(name)) << name;
}

// --- values
// ----------------------------------------------------------------------------------------------------------

class Values : public testing::TestWithParam<std::tuple<std::string, const OpCase*>> {};

TEST_P(Values, AreThoseOfTheEvaluator) {
  const auto& [device, c] = GetParam();
  Args x;
  for (const Array& a : arrays_of(*c)) x.push_back(stored(a, device));
  Tensor y = c->build(x);
  Array want = evaluate(y);
  EXPECT_EQ(y.dtype(), want.dtype);
  EXPECT_EQ(difference(computed(y), want, eval::tolerance(want.dtype, c->steps, c->scale)), "");
}

INSTANTIATE_TEST_SUITE_P(Ops, Values,
                         testing::Combine(testing::ValuesIn(devices()), testing::ValuesIn(cases(false))),
                         [](const auto& info) {
                           return identifier(std::get<0>(info.param)) + "_" +
                                  identifier(std::get<1>(info.param)->name);
                         });

// --- gradients
// -------------------------------------------------------------------------------------------------------

// In double precision by the evaluator, so that a difference is a wrong rule and not rounding.
class Gradients : public testing::TestWithParam<const OpCase*> {
 protected:
  // Builds the case on inputs of f64 and makes one number of its result by random weights.
  void SetUp() override {
    const OpCase& c = *GetParam();
    arrays_ = arrays_of(c);
    for (Array& a : arrays_)
      if (is_float(a.dtype)) a.dtype = f64;
    Args x = inputs_of(arrays_);
    for (std::size_t i = 0; i < x.size(); ++i)
      if (is_float(x[i].dtype())) {
        targets_.push_back(x[i].requires_grad());
        slots_.push_back(i);
      }
    loss_ = weighted(c.build(x));
  }

  Tensor weighted(const Tensor& y) {
    Array weights = random_like(y.shape().concrete(), 0.5);
    Tensor w = input(static_cast<int>(arrays_.size()), f64, weights.dims);
    arrays_.push_back(std::move(weights));
    return (y * w).sum();
  }
  Array random_like(const eval::Dims& dims, double least) {
    Array a(f64, dims);
    for (Scalar& v : a.data) v = float_scalar(least + static_cast<double>(random_() >> 11) * 0x1p-53);
    return a;
  }

  std::mt19937_64 random_{1};
  std::vector<Array> arrays_;
  Args targets_;
  std::vector<std::size_t> slots_;
  Tensor loss_;
};

TEST_P(Gradients, AreFiniteDifferences) {
  std::vector<Array> found = evaluate(loss_.gradient(targets_), arrays_);
  for (std::size_t k = 0; k < targets_.size(); ++k) {
    Array& a = arrays_[slots_[k]];
    Array want(f64, a.dims);
    for (std::size_t i = 0; i < a.data.size(); ++i) {
      double before = a.data[i].f, h = 1e-5 * std::max(1.0, std::abs(before)), around[2];
      for (int side : {0, 1}) {
        a.data[i] = float_scalar(side ? before + h : before - h);
        around[side] = evaluate(loss_, arrays_).at(0);
      }
      a.data[i] = float_scalar(before);
      want.data[i] = float_scalar((around[1] - around[0]) / (2 * h));
    }
    EXPECT_EQ(difference(found[k], want, {.rel = 1e-5, .abs = 1e-6}), "")
        << "with respect to input " << slots_[k];
  }
}

// The gradient of a weighted sum of gradients, along one random direction.
TEST_P(Gradients, OfGradientsToo) {
  std::vector<Tensor> first = loss_.gradient(targets_);
  Tensor sum = weighted(first[0]);
  for (std::size_t k = 1; k < first.size(); ++k) sum = sum + weighted(first[k]);
  std::vector<Array> found = evaluate(sum.gradient(targets_), arrays_);
  std::vector<Array> before = arrays_, direction;
  double slope = 0, around[2], h = 1e-6;
  for (std::size_t k = 0; k < targets_.size(); ++k) {
    direction.push_back(random_like(before[slots_[k]].dims, -0.5));
    for (std::size_t i = 0; i < found[k].data.size(); ++i)
      slope += found[k].data[i].f * direction[k].data[i].f;
  }
  for (int side : {0, 1}) {
    for (std::size_t k = 0; k < targets_.size(); ++k)
      for (std::size_t i = 0; i < direction[k].data.size(); ++i)
        arrays_[slots_[k]].data[i].f = before[slots_[k]].data[i].f + (side ? h : -h) * direction[k].data[i].f;
    around[side] = evaluate(sum, arrays_).at(0);
  }
  double want = (around[1] - around[0]) / (2 * h);
  EXPECT_NEAR(slope, want, 1e-5 * std::max(1.0, std::abs(want)));
}

INSTANTIATE_TEST_SUITE_P(Ops, Gradients, testing::ValuesIn(cases(true)), case_name);

}  // namespace
}  // namespace pg::ops
