// Movement: what only rearranges elements.
#include "ops/op_table.h"

namespace pg::ops {

void add_movement(Table& t) {
  t.add("reshape", {f({2, 6})}, PG_OP(x[0].reshape({3, 4}))).grad();
  t.add("reshape.infer", {f({2, 6})}, PG_OP(x[0].reshape({4, -1}))).grad();
  t.add("reshape.scalar", {f({1, 1})}, PG_OP(x[0].reshape({}))).grad();
  t.add("reshape.empty", {f({0, 3})}, PG_OP(x[0].reshape({3, 0, 7})));
  t.add("reshape.of_permute", {f({2, 3, 4})}, PG_OP(x[0].permute({2, 0, 1}).reshape({8, 3}))).grad();
  t.add("permute", {f({2, 3, 4})}, PG_OP(x[0].permute({1, 2, 0}))).grad();
  t.add("permute.negative", {f({2, 3, 4})}, PG_OP(x[0].permute({-1, 0, 1}))).grad();
  t.add("transpose", {f({3, 5})}, PG_OP(x[0].transpose())).grad();
  t.add("transpose.axes", {f({2, 3, 4})}, PG_OP(x[0].transpose(0, -1))).grad();
  t.add("T", {f({2, 3, 4})}, PG_OP(x[0].T())).grad();
  t.add("expand", {f({3, 1})}, PG_OP(x[0].expand({2, 3, 4}))).grad();
  t.add("expand.keep", {f({3, 1})}, PG_OP(x[0].expand({-1, 4}))).grad();
  t.add("expand.empty", {f({3, 1})}, PG_OP(x[0].expand({3, 0})));
  t.add("flip", {f({3, 4})}, PG_OP(x[0].flip(0))).grad();
  t.add("flip.axes", {f({3, 4, 2})}, PG_OP(x[0].flip({0, -1}))).grad();
  t.add("flip.twice", {f({3, 4})}, PG_OP(x[0].flip(1).flip({1, 0}))).grad();
  t.add("shrink", {f({4, 5})}, PG_OP(x[0].shrink({{1, 3}, {0, 4}}))).grad();
  t.add("shrink.empty", {f({4, 5})}, PG_OP(x[0].shrink({{2, 2}, {0, 4}})));
  t.add("flatten", {f({2, 3, 4})}, PG_OP(x[0].flatten())).grad();
  t.add("flatten.from", {f({2, 3, 4})}, PG_OP(x[0].flatten(1))).grad();
  t.add("flatten.scalar", {f({})}, PG_OP(x[0].flatten())).grad();
  t.add("unflatten", {f({2, 12})}, PG_OP(x[0].unflatten(1, {3, -1}))).grad();
  t.add("squeeze", {f({1, 3, 1, 2})}, PG_OP(x[0].squeeze())).grad();
  t.add("squeeze.axis", {f({1, 3, 1, 2})}, PG_OP(x[0].squeeze(2))).grad();
  t.add("squeeze.not_one", {f({1, 3, 1, 2})}, PG_OP(x[0].squeeze(1))).grad();
  t.add("unsqueeze", {f({3, 2})}, PG_OP(x[0].unsqueeze(1))).grad();
  t.add("unsqueeze.end", {f({3, 2})}, PG_OP(x[0].unsqueeze(-1))).grad();

  t.add("pad", {f({2, 3})}, PG_OP(x[0].pad({{1, 0}, {2, 1}}))).grad();
  t.add("pad_to", {f({2, 3})}, PG_OP(x[0].pad_to({4, 3}, 2.5))).grad();
  t.add("shrink_to", {f({4, 5})}, PG_OP(x[0].shrink_to({2, 5}))).grad();
  t.add("pad.value", {f({2, 3})}, PG_OP(x[0].pad({{1, 2}, {0, 1}}, {.value = 7.5}))).grad();
  t.add("pad.infinity", {f({2, 3})}, PG_OP(x[0].pad({{1, 0}, {0, 1}}, {.value = -HUGE_VAL})));
  t.add("pad.negative", {f({4, 5})}, PG_OP(x[0].pad({{-1, 2}, {1, -3}}))).grad();
  t.add("pad.int", {ints({2, 3}, -9, 9)}, PG_OP(x[0].pad({{1, 1}, {1, 1}}, {.value = 3})));
  t.add("pad.reflect", {f({1, 4, 5})}, PG_OP(x[0].pad({{0, 0}, {2, 1}, {3, 4}}, {.mode = PadMode::Reflect})))
      .grad();
  t.add("pad.replicate", {f({1, 4, 5})},
        PG_OP(x[0].pad({{0, 0}, {2, 1}, {3, 5}}, {.mode = PadMode::Replicate})))
      .grad();
  t.add("pad.circular", {f({1, 4, 5})},
        PG_OP(x[0].pad({{0, 0}, {2, 1}, {3, 5}}, {.mode = PadMode::Circular})))
      .grad();
  t.add("pad.empty", {f({0, 2})}, PG_OP(x[0].pad({{1, 1}, {0, 0}}, {.value = 2})));

  t.add("cat", {f({2, 3}), f({2, 3})}, PG_OP(cat({x[0], x[1]}))).grad();
  t.add("cat.unequal", {f({2, 3}), f({2, 1}), f({2, 4})}, PG_OP(cat({x[0], x[1], x[2]}, 1))).grad();
  t.add("cat.negative", {f({2, 3}), f({2, 2})}, PG_OP(cat({x[0], x[1]}, -1))).grad();
  t.add("cat.empty", {f({0, 3}), f({2, 3})}, PG_OP(cat({x[0], x[1]}))).grad();
  t.add("cat.promotes", {ints({2}, 0, 9), f({3})}, PG_OP(cat({x[0], x[1]})));
  t.add("cat.one", {f({2, 2})}, PG_OP(cat({x[0]}, 1))).grad();
  t.add("stack", {f({2, 3}), f({2, 3})}, PG_OP(stack({x[0], x[1]}))).grad();
  t.add("stack.last", {f({2, 3}), f({2, 3}), f({2, 3})}, PG_OP(stack({x[0], x[1], x[2]}, -1))).grad();
  t.add("stack.scalars", {f({}), f({})}, PG_OP(stack({x[0], x[1]}))).grad();
  t.add("split", {f({7, 2})}, PG_OP(x[0].split(3)[2])).grad();
  t.add("split.sizes", {f({2, 7})}, PG_OP(x[0].split({2, 4, 1}, 1)[1])).grad();
  t.add("chunk", {f({7, 2})}, PG_OP(x[0].chunk(3)[1])).grad();
  t.add("unbind", {f({3, 2})}, PG_OP(x[0].unbind(1)[1])).grad();
  t.add("meshgrid", {f({3}), f({2})}, PG_OP(meshgrid({x[0], x[1]})[1])).grad();
  t.add("repeat", {f({2, 3})}, PG_OP(x[0].repeat({2, 2}))).grad();
  t.add("repeat.more_axes", {f({2, 3})}, PG_OP(x[0].repeat({2, 1, 3}))).grad();
  t.add("repeat.zero", {f({2, 3})}, PG_OP(x[0].repeat({0, 1})));
  t.add("repeat_interleave", {f({2, 3})}, PG_OP(x[0].repeat_interleave(2))).grad();
  t.add("repeat_interleave.axis", {f({2, 3})}, PG_OP(x[0].repeat_interleave(3, 1))).grad();
  t.add("roll", {f({3, 4})}, PG_OP(x[0].roll(1, 0))).grad();
  t.add("roll.axes", {f({3, 4})}, PG_OP(x[0].roll({-1, 2}, {0, 1}))).grad();
  t.add("roll.flat", {f({3, 4})}, PG_OP(x[0].roll(5))).grad();
  t.add("roll.far", {f({5})}, PG_OP(x[0].roll(-13, 0))).grad();
  t.add("diagonal", {f({4, 4})}, PG_OP(x[0].diagonal())).grad();
  t.add("diagonal.above", {f({3, 5})}, PG_OP(x[0].diagonal(1))).grad();
  t.add("diagonal.below", {f({2, 5, 3})}, PG_OP(x[0].diagonal(-2, 1, 2))).grad();
  t.add("diag", {f({4})}, PG_OP(x[0].diag())).grad();
  t.add("tril", {f({4, 5})}, PG_OP(x[0].tril())).grad();
  t.add("tril.above", {f({4, 5})}, PG_OP(x[0].tril(1))).grad();
  t.add("triu", {f({2, 4, 3})}, PG_OP(x[0].triu())).grad();
  t.add("triu.below", {f({4, 5})}, PG_OP(x[0].triu(-2))).grad();
  t.add("unfold", {f({9})}, PG_OP(x[0].unfold(0, 3, 2))).grad();
  t.add("unfold.middle", {f({2, 8, 2})}, PG_OP(x[0].unfold(1, 4, 3))).grad();
  t.add("rearrange", {f({2, 6, 3})}, PG_OP(x[0].rearrange("b (h w) c -> b c h w", {{"h", 2}}))).grad();
  t.add("rearrange.merge", {f({2, 3, 4})}, PG_OP(x[0].rearrange("a b c -> (c a) b"))).grad();

  // Movements upon movements, as convolutions and writes make them.
  t.add("moves.window", {f({6})}, PG_OP(x[0].pad({{1, 1}}).unfold(0, 3, 1).flip(1))).grad();
  t.add("moves.padded_expand", {f({1, 3})},
        PG_OP(x[0].expand({4, 3}).pad({{1, 0}, {0, 2}}).reshape({25}).shrink({{2, 20}})))
      .grad();
  t.add("moves.diamond", {f({4, 4})}, PG_OP(x[0].flip(0) + x[0].permute({1, 0}).flip(1))).grad();
  t.add("contiguous", {f({3, 4})}, PG_OP(x[0].permute({1, 0}).contiguous() + 1)).grad();
  t.add("clone", {f({3, 4})}, PG_OP(x[0].permute({1, 0}).clone())).grad();
  t.add("detach", {f({3, 4})}, PG_OP(x[0].detach() * 2));
}

}  // namespace pg::ops
