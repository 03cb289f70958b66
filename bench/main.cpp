// pangrad-bench [demo | graph | kernels | launch | pipelines | rules | steady] [rows]: figures as JSON lines;
// all of them without a name, and of a group that compares with rivals those whose name contains `rows`.
#include <cstdio>
#include <exception>
#include <string>

#include "figure.h"
#include "graph.h"
#include "memory.h"

int main(int argc, char** argv) try {
  std::string only = argc > 1 ? argv[1] : "";
  if (argc > 2) pg::bench::only_rows = argv[2];
  // What compare_peak_memory asks of a process of its own.
  if (only == "memory") return pg::bench::print_peak_memory(pg::bench::only_rows), 0;
  if (only == "first-result") return pg::bench::first_result();
  const struct {
    const char* name;
    void (*run)();
  } groups[] = {{"graph", pg::bench::graph},   {"kernels", pg::bench::kernels},
                {"launch", pg::bench::launch}, {"rules", pg::bench::rules},
                {"demo", pg::bench::demo},     {"pipelines", pg::bench::pipelines},
                {"steady", pg::bench::steady}};
  bool found = false;
  for (const auto& g : groups)
    if (only.empty() || only == g.name) {
      g.run();
      found = true;
    }
  if (found) return 0;
  std::fprintf(
      stderr,
      "pangrad-bench: no group \"%s\"; there are demo, graph, kernels, launch, pipelines, rules, steady\n",
      only.c_str());
  return 1;
} catch (const std::exception& e) {
  std::fprintf(stderr, "pangrad-bench: %s\n", e.what());
  return 1;
}
