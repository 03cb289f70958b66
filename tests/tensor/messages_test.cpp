// What a user reads who got something wrong: where it was written, in brackets, and the shapes or dtypes in
// question.
#include "base/flags.h"
#include "tensor/helpers.h"

namespace pg {
namespace {

Tensor x34() { return Tensor::zeros({3, 4}); }
Tensor x5() { return Tensor::zeros({5}); }

// The whole of each message: changing one is a decision, not an accident.
TEST(Messages, Shapes) {
  auto shape = [](auto f) { return message<ShapeError>(f); };
  EXPECT_EQ(shape([] { x34() + x5(); }), "[add] shapes (3, 4) and (5) do not broadcast");
  EXPECT_EQ(shape([] { where(x34() > 0, x5(), 0); }), "[where] shapes (3, 4) and (5) do not broadcast");
  EXPECT_EQ(shape([] { x34().reshape({5, 2}); }), "[reshape] (3, 4) has 12 elements, (5, 2) has 10");
  EXPECT_EQ(shape([] { x34().reshape({5, -1}); }),
            "[reshape] (3, 4) has 12 elements, which do not divide into (5, -1)");
  EXPECT_EQ(shape([] { x34().reshape({-1, -1}); }), "[reshape] (-1, -1) leaves more than one size open");
  EXPECT_EQ(shape([] { x34().permute({0, 0}); }), "[permute] (0, 0) is no order of the axes of (3, 4)");
  EXPECT_EQ(shape([] { x34().expand({3, 5}); }), "[expand] (3, 4) does not expand to (3, 5)");
  EXPECT_EQ(shape([] { x34().shrink({{0, 3}, {2, 6}}); }), "[shrink] 2..6 is no part of axis 1 of (3, 4)");
  EXPECT_EQ(shape([] { x34().pad({{1, 1}}); }), "[pad] 1 pairs for shape (3, 4), which has 2 axes");
  EXPECT_EQ(shape([] { cat({x34(), Tensor::zeros({3, 5})}); }),
            "[cat] shapes (3, 4) and (3, 5) differ besides axis 0");
  EXPECT_EQ(shape([] { stack({x34(), x5()}); }), "[stack] shapes (3, 4) and (5) differ");
  EXPECT_EQ(shape([] { x34().matmul(x34()); }),
            "[matmul] shapes (3, 4) and (3, 4): the inner sizes 4 and 3 differ");
  EXPECT_EQ(shape([] { x34().split({1, 1}); }),
            "[split] the sizes (1, 1) sum up to 2, axis 0 of (3, 4) does not");
  EXPECT_EQ(shape([] { Tensor::zeros({1, 3, 8, 8}).conv2d(Tensor::zeros({4, 2, 3, 3})); }),
            "[conv] an input of shape (1, 3, 8, 8), a weight of shape (4, 2, 3, 3) and 1 groups do not fit");
  EXPECT_EQ(shape([] { Tensor::zeros({1, 3, 2, 8}).conv2d(Tensor::zeros({4, 3, 3, 3})); }),
            "[conv] a window of (4, 3, 3, 3) does not fit into axis 2 of (1, 3, 2, 8)");
  EXPECT_EQ(shape([] { Tensor::zeros({1, 1, 1, 4}).max_pool2d(); }),
            "[max_pool] a window of 2 does not fit into axis 2 of (1, 1, 1, 4)");
  EXPECT_EQ(shape([] { x34().cross_entropy(Tensor::zeros({4}, {.dtype = i32})); }),
            "[cross_entropy] an input of shape (3, 4) with classes along axis 1, and a target of shape (4)");
  EXPECT_EQ(shape([] { x34().assign(x5()); }),
            "[assign] a value of shape (5) does not broadcast to the target's (3, 4)");
  EXPECT_EQ(shape([] { x5().assign(Tensor::zeros({2, 5})); }),
            "[assign] a value of shape (2, 5) does not broadcast to the target's (5)");
  EXPECT_EQ(shape([] {
              Tensor x = x34();
              x[0] = x5();
            }),
            "[setitem] a value of shape (5) does not broadcast to the target's (4)");
  EXPECT_EQ(shape([] { x34().item<float>(); }), "[item] shape (3, 4) has 12 elements, not one");
  EXPECT_EQ(shape([] { Tensor::of(std::vector<float>{1, 2, 3}, {2, 2}); }), "[of] 3 values for shape (2, 2)");
  EXPECT_EQ(shape([] { Tensor::of({{1, 2}, {3}}); }), "[of] rows of 2 and of 1 elements");
  EXPECT_EQ(shape([] { Tensor::zeros({2, -3}); }), "[zeros] (2, -3) has a negative size");
  EXPECT_EQ(shape([] { x5().expand({2, 5}).assign(1); }),
            "[assign] the target repeats elements by an expand: which of them to write is open");
  EXPECT_EQ(shape([] { Tensor::of({1, 2, 3}).bitcast(i64); }),
            "[bitcast] the last axis of (3) as i32 does not divide into i64");
}

TEST(Messages, Indices) {
  auto index = [](auto f) { return message<IndexError>(f); };
  EXPECT_EQ(index([] { x34().sum(2); }), "[sum] axis 2 is out of range for shape (3, 4)");
  EXPECT_EQ(index([] { x34().sum({0, -2}); }), "[sum] axis -2 is named twice for shape (3, 4)");
  EXPECT_EQ(index([] { x34().softmax(-3); }), "[softmax] axis -3 is out of range for shape (3, 4)");
  EXPECT_EQ(index([] { x34().size(2); }), "[size] axis 2 is out of range for shape (3, 4)");
  EXPECT_EQ(index([] { x34()[3]; }), "[index] index 3 is out of range for axis 0 of (3, 4)");
  EXPECT_EQ(index([] { x34()[{0, -5}]; }), "[index] index -5 is out of range for axis 1 of (3, 4)");
  EXPECT_EQ(index([] { x34()[std::vector<std::int64_t>{0, 3}]; }),
            "[index] index 3 is out of range for axis 0 of (3, 4)");
  // A tensor's rows are only known when it is used.
  EXPECT_EQ(x5()[Tensor::of({4, 5, -6})].to_vector<float>()[1], 0);
  EXPECT_EQ(index([] { x34()[{0, 0, 0}]; }), "[index] 3 positions for shape (3, 4), which has 2 axes");
  EXPECT_EQ(index([] { x34()[{ellipsis, ellipsis}]; }), "[index] more than one ellipsis");
  EXPECT_EQ(index([] { x34()[x5()]; }),
            "[index] an index tensor is f32: indices are integers (masks have where and masked_fill)");
  EXPECT_EQ(index([] { x34()[x34() > 0]; }),
            "[index] an index tensor is bool: indices are integers (masks have where and masked_fill)");
  EXPECT_EQ(index([] { x34().unsqueeze(4); }), "[unsqueeze] there is no place 4 for an axis in shape (3, 4)");
  // An index that is wrong is reported before the value.
  EXPECT_EQ(index([] {
              Tensor x = x34();
              x[7] = x5();
            }),
            "[index] index 7 is out of range for axis 0 of (3, 4)");
  EXPECT_EQ(message<ValueError>([] { x34()[Slice{.step = 0}]; }), "[index] a slice of step 0");
}

// What looks like a tensor of numbers is one.
TEST(Messages, NothingToSay) {
  EXPECT_EQ(Tensor(3).item<int>(), 3);
  EXPECT_EQ(Tensor(std::size_t{4}).dtype(), i32);
  EXPECT_EQ(Tensor(2.5f).dtype(), f32);
  EXPECT_EQ(Tensor(true).dtype(), DType::Bool);
  EXPECT_EQ(Tensor(Dim(3)).item<int>(), 3);
  EXPECT_EQ(Tensor(Variable("n", 1, 4).bind(2)).item<int>(), 2);
  EXPECT_EQ(Tensor::ones({2, 3, 8}).max_pool2d({2}).shape(), (Shape{2, 3, 4}));
  EXPECT_EQ(Tensor::ones({2, 4, 8}).max_pool2d(2).shape(), (Shape{2, 2, 4}));
}

TEST(Messages, Dtypes) {
  auto dtype = [](auto f) { return message<DTypeError>(f); };
  EXPECT_EQ(dtype([] { x5() & x5(); }), "[and] takes integers and bool, not f32");
  EXPECT_EQ(dtype([] { x5() << 1; }), "[shift left] takes integers, not f32 and i32");
  EXPECT_EQ(dtype([] { where(x5(), 1, 0); }),
            "[where] the condition is f32, not bool: compare it with something");
  EXPECT_EQ(dtype([] { x5().assign(Tensor::zeros({5}, {.dtype = i32})); }),
            "[assign] the value is i32, the target f32: cast it first");
  EXPECT_EQ(dtype([] {
              Tensor x = Tensor::of({1, 2});
              x += 0.5;
            }),
            "[+=] the value is f32, the target i32: cast it first");
  EXPECT_EQ(dtype([] { Tensor::of({1, 2}).requires_grad(); }), "[requires_grad] takes floats, not i32");
  EXPECT_EQ(dtype([] { Tensor::of({1.0}, {.dtype = f64}).item<float>(); }),
            "[item] f32 does not hold every f64: cast it first");
  EXPECT_EQ(dtype([] { Tensor::of({1.f}).to_vector<int>(); }),
            "[to_vector] i32 does not hold every f32: cast it first");
  EXPECT_EQ(dtype([] { Tensor::rand({2}, {.dtype = i32}); }), "[rand] draws floats, not i32");
  EXPECT_EQ(dtype([] { Tensor::randint({2}, {.dtype = f32}); }), "[randint] draws integers, not f32");
  EXPECT_EQ(dtype([] { (x5() > 0) - (x5() > 0); }),
            "[sub] takes numbers, not bool: cast first, or use ^ or ~");
  EXPECT_EQ(dtype([] { x5().cross_entropy(x5() > 0); }), "");
}

TEST(Messages, Values) {
  auto value = [](auto f) { return message<ValueError>(f); };
  EXPECT_EQ(value([] {
              Tensor x;
              x + 1;
            }),
            "[add] the tensor holds nothing: it was never given a value, or was moved from");
  EXPECT_EQ(value([] {
              Tensor x = x5(), y = std::move(x);
              x.sum();
            }),
            "[sum] the tensor holds nothing: it was never given a value, or was moved from");
  EXPECT_EQ(value([] { Tensor::of({2}).pow(-1); }),
            "[pow] an integer base with the negative exponent -1: cast the base to a float");
  EXPECT_EQ(value([] { x5().topk(6); }), "[topk] 6 of axis -1 of (5)");
  EXPECT_EQ(value([] { x5().dropout(1.5); }), "[dropout] a probability of 1.5");
  EXPECT_EQ(value([] { Tensor::randint({2}, {.low = 3, .high = 3}); }), "[randint] no integers in [3, 3)");
  EXPECT_EQ(value([] { Tensor::arange(0, 10, 0); }), "[arange] a step of 0");
  EXPECT_EQ(value([] { einsum("ij,jk", {x34()}); }), "[einsum] \"ij,jk\" names 2 operands, 1 are given");
  EXPECT_EQ(value([] { Variable("n", 1, 4).bind(5); }), "[bind] 5 is outside 1..4, the bounds of n");
}

TEST(Messages, IndexAdd) {
  Tensor x = x34(), at = Tensor::of({0, 2});
  EXPECT_EQ(message<ShapeError>([&] { x.index_add(0, at, Tensor::zeros({3, 4})); }),
            "[index_add] an index of shape (2) and a source of shape (3, 4) along axis 0 of (3, 4)");
  EXPECT_EQ(message<ShapeError>([&] { x.index_add(1, at.unsqueeze(0), x); }),
            "[index_add] an index of shape (1, 2) and a source of shape (3, 4) along axis 1 of (3, 4)");
  EXPECT_EQ(message<IndexError>([&] { x.index_add(0, at.cast(f32), Tensor::zeros({2, 4})); }),
            "[index_add] the index is f32: indices are integers");
  EXPECT_EQ(message<DTypeError>([&] { x.index_add(0, at, Tensor::zeros({2, 4}, {.dtype = i32})); }),
            "[index_add] the source is i32, the target f32");
  EXPECT_EQ(message<IndexError>([&] { x.index_add(2, at, x); }),
            "[index_add] axis 2 is out of range for shape (3, 4)");
}

TEST(Messages, Selections) {
  Tensor x = x34();
  EXPECT_EQ(message<DTypeError>([&] { x.masked_select(x); }), "[masked_select] the mask is f32, not bool");
  EXPECT_EQ(message<ShapeError>([&] { x.masked_select(x5() > 0); }),
            "[masked_select] shapes (3, 4) and (5) do not broadcast");
  EXPECT_EQ(message<ValueError>([&] { x.nonzero({.size = -1}); }), "[nonzero] a size of -1");
  EXPECT_EQ(message<ShapeError>([&] { x.pad_to({3, 3}); }), "[pad_to] shape (3, 4) to (3, 3)");
  EXPECT_EQ(message<ShapeError>([&] { x.pad_to({3}); }), "[pad_to] shape (3, 4) to (3)");
  Tensor image = Tensor::zeros({1, 2, 2});
  EXPECT_EQ(message<ShapeError>([&] { image.max_unpool2d(x.cast(i32)); }),
            "[max_unpool] indices of shape (3, 4) for values of shape (1, 2, 2) over 2 axes");
  EXPECT_EQ(message<ShapeError>([&] { image.max_unpool2d(image.cast(i32), {2, 2}, {}, {4}); }),
            "[max_unpool] 1 sizes for 2 axes");
}

TEST(Messages, Gradients) {
  EXPECT_EQ(message<ShapeError>([] { (x5().requires_grad() * 2).backward(); }),
            "[backward] shape (5) is no scalar: reduce it, or say what gradient comes in");
  EXPECT_EQ(message<ValueError>([] { x5().sum().backward(); }),
            "[backward] nothing that this tensor was computed from requires gradients");
  EXPECT_EQ(message<DTypeError>([] { x5().requires_grad().cast(i32).sum().backward(); }),
            "[backward] takes floats, not i32");
  EXPECT_EQ(message<ValueError>([] { x5().sum().gradient({x34()}); }),
            "[gradient] target 0 of shape (3, 4) is not marked: say requires_grad() before it is used");
  EXPECT_EQ(message<ValueError>([] {
              Tensor w = x5().requires_grad(), loss = w.sum();
              loss.backward();
              loss.backward();
            }),
            "[backward] the history of this tensor ended with [backward]; retain it to use it again");
  EXPECT_EQ(message<ValueError>([] {
              Tensor w = x5().requires_grad(), loss = (w * w).sum();
              w.assign(1);
              loss.backward();
            }),
            "[backward] a marked tensor of shape (5) was overwritten by [assign] after it was read: its "
            "gradient would be that of other "
            "contents");
  EXPECT_EQ(message<ValueError>([] { x34()[0].requires_grad(); }),
            "[requires_grad] this is a view: mark the tensor it looks at");
}

TEST(Messages, Devices) {
  {
    ScopedFlag disk("DEV", "DISK:/tmp/pangrad-no-such-file");
    EXPECT_EQ(message<DeviceError>([] { Tensor::of({1.f}); }),
              "[device] DISK:/tmp/pangrad-no-such-file runs no kernels, so it cannot be the default device");
  }
  EXPECT_NE(message<DeviceError>([] { Tensor::zeros({2}, {.device = "NOWHERE"}); }).find("NOWHERE"),
            std::string::npos);
  EXPECT_EQ(message<DeviceError>([] { Tensor::of({1, 2}) + Tensor::of({1, 2}, {.device = "CPU:1"}); }),
            "[add] one operand is on CPU, the other on CPU:1: move one with to()");
  EXPECT_EQ(message<DeviceError>([] { Tensor::of({1, 2}).assign(Tensor::of({1, 2}, {.device = "CPU:1"})); }),
            "[assign] the value is on CPU:1, the target on CPU: move it with to()");
}

}  // namespace
}  // namespace pg
