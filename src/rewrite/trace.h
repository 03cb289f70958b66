// Writes down what every pass did, one JSON object a line, and reads it back: for `pangrad trace show FILE`
// and for the visualiser. TRACE=file starts it with the first pass. A traced program is slow: each pass
// prints its graph twice.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace pg {

struct PassRecord;

/// A rule that fired, by its place in the source.
struct TracedRule {
  std::string file;
  std::uint32_t line = 0;
  std::uint64_t count = 0;
};
/// A line of a trace. Passes stand in the order they ended in: those that ran inside another stand before it.
struct TracedPass {
  std::string name;
  double seconds = 0;
  std::uint64_t nodes = 0;     // visited
  std::uint64_t attempts = 0;  // rules tried
  std::vector<TracedRule> fired;
  std::string before, after;  // as ir/print.h writes graphs
};

/// From now on the passes of all threads are appended to the file, until another is started. Throws FileError
/// if it cannot be written.
void start_trace(const std::string& path);
void stop_trace();

/// Reads a trace. Throws FileError, with the byte offset, where a line is no traced pass; a last line without
/// its end, as a killed process leaves it, is left out.
std::vector<TracedPass> read_trace(const std::string& path);

/// Passes by name with their sums, slowest first; then the rules that fired, most often first.
std::string trace_summary(std::span<const TracedPass> passes);
/// The passes of that name (all, if empty) in order, each with the graph before and after.
std::string trace_listing(std::span<const TracedPass> passes, std::string_view name = {});

namespace detail {
/// For rewrite: a line for the pass and one for each rule that fired in it, which DEBUG=6 asks for.
void log_pass(const PassRecord& record);
/// For rewrite: whether passes are traced, and the tracing of one.
bool tracing();
void trace_pass(const PassRecord& record);
}  // namespace detail

}  // namespace pg
