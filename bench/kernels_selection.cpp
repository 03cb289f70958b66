// Rows picked, added to, sorted and summed up.
#include <vector>

#include <fmt/format.h>

#include "kernels.h"
#include "measure.h"

namespace pg::bench {

void selections() {
  Rival& torch = Rival::torch();
  constexpr std::int64_t kVocabulary = 50257, kWidth = 768, kTokens = 4096;
  constexpr double kRows = 4.0 * kTokens * kWidth, kTable = 4.0 * kVocabulary * kWidth;
  Tensor table = Tensor::randn({kVocabulary, kWidth}),
         tokens = Tensor::randint({kTokens}, {.high = kVocabulary});
  measure({.name = "embedding gather, 4096 rows of 50257 x 768",
           .bytes = 2 * kRows,
           .inputs = {table, tokens},
           .ours = [](const std::vector<Tensor>& in) { return std::vector{in[0].index_select(0, in[1])}; },
           .rival_work = fmt::format("embedding {} {} {}", kVocabulary, kWidth, kTokens)},
          {Goal::beat(torch, 1)});
  measure(
      {.name = "index_add, 4096 rows to 50257 x 768",
       .bytes = kRows + 2 * kTable,
       .inputs = {table, tokens, Tensor::randn({kTokens, kWidth})},
       .ours = [](const std::vector<Tensor>& in) { return std::vector{in[0].index_add(0, in[1], in[2])}; },
       .rival_work = fmt::format("index_add {} {} {}", kVocabulary, kWidth, kTokens)},
      {Goal::beat(torch, 1)});
  constexpr std::int64_t kMany = 1'000'000;
  measure({.name = "sort 1M",
           .bytes = 12.0 * kMany,
           .inputs = {Tensor::randn({kMany})},
           .ours =
               [](const std::vector<Tensor>& in) {
                 auto [values, at] = in[0].sort();
                 return std::vector{values, at};
               },
           .rival_work = fmt::format("sort {}", kMany)},
          {Goal::beat(torch, 1)});
  measure({.name = "topk 50 of 64 x 32768",
           .bytes = 4.0 * 64 * 32768,
           .inputs = {Tensor::randn({64, 32768})},
           .ours =
               [](const std::vector<Tensor>& in) {
                 auto [values, at] = in[0].topk(50);
                 return std::vector{values, at};
               },
           .rival_work = "topk 64 32768 50"},
          {Goal::beat(torch, 1)});
  measure({.name = "cumsum of rows of 4096 x 4096",
           .bytes = 8.0 * 4096 * 4096,
           .inputs = {Tensor::randn({4096, 4096})},
           .ours = [](const std::vector<Tensor>& in) { return std::vector{in[0].cumsum(-1)}; },
           .rival_work = "cumsum 4096 4096"},
          {Goal::beat(torch, 1)});
  measure({.name = "cumsum 1M",
           .bytes = 8.0 * kMany,
           .inputs = {Tensor::randn({kMany})},
           .ours = [](const std::vector<Tensor>& in) { return std::vector{in[0].cumsum(0)}; },
           .rival_work = fmt::format("cumsum 1 {}", kMany)},
          {Goal::beat(torch, 1)});
}

}  // namespace pg::bench
