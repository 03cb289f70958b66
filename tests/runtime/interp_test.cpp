// What INTERP refuses: accesses outside a buffer, reads of what was never written, races, barriers that not
// all reach. And that work-items of a group see each other's shared memory across barriers, and only there.
#include <gtest/gtest.h>

#include "ir/print.h"
#include "ir/wmma.h"
#include "programs/builder.h"
#include "rules/spec.h"
#include "runtime/device.h"
#include "runtime/interp/code.h"

namespace pg::test {
namespace {

using runtime::device;
using runtime::Device;

Ref at(std::int64_t i) { return int_const(i64, i); }

struct Launched {
  std::vector<std::vector<float>> buffers;
  std::string error;  // empty if it ran
};

// Runs a program of float buffers on a device, by way of its text; `global` are threads or groups.
Launched run(const std::string& device_name, Ref linear, std::vector<std::vector<float>> buffers,
             std::array<std::int64_t, 3> global = {1, 1, 1}, std::array<std::int64_t, 3> local = {1, 1, 1}) {
  rules::verify(linear, rules::Stage::Program, "test");
  Device& d = device(device_name);
  std::string text = print(linear);
  runtime::ProgramImage image{d.compiler("program").compile(text),
                              {.name = "k", .buffers = static_cast<int>(buffers.size())}};
  Launched out{buffers, ""};
  try {
    auto program = d.load(image);
    std::vector<runtime::Buffer> memory;
    for (auto& b : out.buffers) memory.push_back(d.borrow(b.data(), b.size() * sizeof(float), {}, true));
    program->launch(memory, {}, {global, local});
  } catch (const Error& e) {
    out.error = e.what();
  }
  return out;
}

void expect_error(const Launched& got, std::initializer_list<const char*> parts) {
  for (const char* part : parts) EXPECT_NE(got.error.find(part), std::string::npos) << got.error;
}

TEST(Interp, NamesAnAccessOutsideItsBuffer) {
  GraphScope scope;
  for (bool store : {false, true}) {
    Builder p;
    Ref i = p.loop(5);
    Ref in = p.param(1, f32, 4), out = p.param(0, f32, 5), x = p.load(p.at(in, store ? i - i : i));
    p.store(p.at(store ? in : out, i), x);
    p.end();
    Launched got = run("INTERP", p.linear(), {std::vector<float>(5), {1, 2, 3, 4}});
    expect_error(got, {"[interp] k", store ? "Store" : "Load", "index 4", "slot 1", "4 elements"});
    EXPECT_EQ(got.buffers[store ? 1 : 0][3], store ? 1.0f : 4.0f) << "what came before happened";
  }
}

TEST(Interp, AVectorMayNotReachPastTheEnd) {
  GraphScope scope;
  Builder p;
  p.store(p.at(p.param(0, f32, 4), at(0)), p.load(p.at(p.param(1, f32, 6), at(3)), 4));
  expect_error(run("INTERP", p.linear(), {std::vector<float>(4), std::vector<float>(6)}),
               {"index 6", "slot 1"});
}

TEST(Interp, ReadsNoScratchThatWasNotWritten) {
  GraphScope scope;
  Builder p;
  Ref panel = p.local(0, f32, 4);
  p.store(p.at(panel, at(1)), float_const(f32, 1));
  p.store(p.at(p.param(0, f32, 1), at(0)), p.load(p.at(panel, at(2))));
  expect_error(run("INTERP", p.linear(), {{0}}), {"element 2 of local memory 0", "before it is written"});
}

TEST(Interp, WritesNoMemoryLentForReading) {
  GraphScope scope;
  Builder p;
  p.store(p.at(p.param(0, f32, 1), at(0)), float_const(f32, 1));
  Device& d = device("INTERP");
  auto program = d.load({d.compiler("program").compile(print(p.linear())), {.name = "k", .buffers = 1}});
  float x = 3;
  std::vector<runtime::Buffer> memory{d.borrow(&x, sizeof x)};
  EXPECT_THROW(program->launch(memory), InternalError);
  EXPECT_EQ(x, 3);
}

TEST(Interp, RefusesTextThatIsNoProgram) {
  Device& d = device("INTERP");
  EXPECT_THROW(d.compiler("program").compile("Linear("), DeviceError);
  EXPECT_THROW(d.compiler("llvm"), DeviceError);
  GraphScope scope;
  // Exp should have been decomposed; a Reduce over loops lowered.
  Builder p;
  p.store(p.at(p.param(0, f32, 1), at(0)), alu(Op::Exp, {p.load(p.at(p.param(0, f32, 1), at(0)))}));
  expect_error(run("INTERP", p.linear(), {{0}}), {"Exp", "decomposed"});
}

TEST(Interp, ThreadsThatMeetRace) {
  GraphScope scope;
  // Each thread writes its own element; then all write the same one; then each reads its neighbour's.
  for (int what : {0, 1, 2}) {
    Builder p;
    Ref t = p.special("thread", 3), buffer = p.param(0, f32, 4);
    if (what == 2) p.load(p.at(buffer, t + 1));
    p.store(p.at(buffer, what == 1 ? at(2) : t), float_const(f32, 1));
    Launched got = run("INTERP", p.linear(), {std::vector<float>(4)}, {3, 1, 1});
    if (what == 0)
      EXPECT_EQ(got.error, "");
    else
      expect_error(got, {"a race on element", "slot 0", "thread 1", "thread 0"});
  }
}

// out[group * n + item] = in[group * n + n - 1 - item], by way of shared memory.
Launched reverse(bool barrier, bool twice = false) {
  Builder p;
  constexpr std::int64_t n = 8, groups = 2;
  Ref group = p.special("gidx0", groups, i32), item = p.special("lidx0", n, i32), shared = p.local(0, f32, n);
  Ref mine = group * n + item;
  p.store(p.at(shared, item), p.load(p.at(p.param(1, f32, n * groups), mine)));
  if (barrier) p.barrier();
  Ref x = p.load(p.at(shared, int_const(i32, n - 1) - item));
  if (twice) p.store(p.at(shared, item), x);
  p.store(p.at(p.param(0, f32, n * groups), mine), x);
  std::vector<float> in(n * groups);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i);
  return run("INTERP:gpu", p.linear(), {std::vector<float>(n * groups), in}, {groups, 1, 1}, {n, 1, 1});
}

TEST(Interp, ItemsMeetAtBarriers) {
  GraphScope scope;
  Launched got = reverse(true);
  EXPECT_EQ(got.error, "");
  for (std::size_t i = 0; i < 16; ++i)
    EXPECT_EQ(got.buffers[0][i], static_cast<float>(i / 8 * 8 + 7 - i % 8));
}
TEST(Interp, WithoutABarrierTheyRace) {
  GraphScope scope;
  expect_error(reverse(false), {"local memory 0"});
  // Written again before all have read.
  expect_error(reverse(true, true), {"a race on element", "local memory 0", "item"});
}

TEST(Interp, GroupsHaveNoBarrierBetweenThem) {
  GraphScope scope;
  for (bool same_group : {false, true}) {
    // Item or group 0 writes, the other reads after a barrier.
    Builder p;
    Ref i = p.special(same_group ? "lidx0" : "gidx0", 2, i32), buffer = p.param(0, f32, 2);
    Ref first = eq(i, int_const(i32, 0));
    p.store(p.at(buffer, int_const(i32, 0), first), float_const(f32, 5));
    p.barrier();
    Ref x = p.load(p.at(buffer, int_const(i32, 0), logical_not(first)));
    p.store(p.at(buffer, int_const(i32, 1), logical_not(first)), x);
    std::array<std::int64_t, 3> two{2, 1, 1}, one{1, 1, 1};
    Launched got = run("INTERP:gpu", p.linear(), {{0, 0}}, same_group ? one : two, same_group ? two : one);
    if (same_group)
      EXPECT_EQ(got.buffers[0], (std::vector<float>{5, 5})) << got.error;
    else
      expect_error(got, {"a race on element 0", "group 1", "group 0"});
  }
}

TEST(Interp, ABarrierThatNotAllReachIsAnError) {
  GraphScope scope;
  Builder p;
  Ref i = p.special("lidx0", 4, i32);
  p.begin_if(i < 2);
  p.barrier();
  p.end_if();
  expect_error(run("INTERP:gpu", p.linear(), {}, {1, 1, 1}, {4, 1, 1}), {"item 2", "Barrier"});
}

TEST(Interp, BarriersWithinLoopsAndIfs) {
  GraphScope scope;
  // A sum over 8 items as a tree: in each round the lower half adds the upper one.
  Builder p;
  constexpr std::int64_t n = 8;
  Ref item = p.special("lidx0", n, i32), shared = p.local(0, f32, n), half = p.acc(int_const(i32, n));
  p.store(p.at(shared, item), p.load(p.at(p.param(1, f32, n), item)));
  p.loop(3, i32);
  p.set(half, p.get(half) >> int_const(i32, 1));
  p.barrier();
  Ref h = p.get(half);
  p.begin_if(item < h);
  p.store(p.at(shared, item), p.load(p.at(shared, item)) + p.load(p.at(shared, item + h)));
  p.end_if();
  p.end();
  p.begin_if(eq(item, int_const(i32, 0)));
  p.store(p.at(p.param(0, f32, 1), int_const(i32, 0)), p.load(p.at(shared, int_const(i32, 0))));
  p.end_if();
  Launched got = run("INTERP:gpu", p.linear(), {{0}, {1, 2, 3, 4, 5, 6, 7, 8}}, {1, 1, 1}, {n, 1, 1});
  EXPECT_EQ(got.error, "");
  EXPECT_EQ(got.buffers[0][0], 36);
}

TEST(Interp, MatricesOfAWarp) {
  GraphScope scope;
  constexpr std::int64_t n = 256;
  Builder p;
  Ref first = p.special("lidx0", 32, i32) * 8;
  Ref a = cast(p.load(p.at(p.param(1, f32, n), first), 8), f16),
      b = cast(p.load(p.at(p.param(2, f32, n), first), 8), f16);
  Ref c = p.load(p.at(p.param(0, f32, n), first), 8);
  Ref d = p.add(wmma(a, b, c, {16, 16, 16, f16, f32}));
  p.store(p.at(p.param(0, f32, n), first), d);
  std::vector<float> x(n), y(n), z(n), expected(n);
  for (std::size_t i = 0; i < n; ++i)
    x[i] = static_cast<float>(i % 7) - 3, y[i] = static_cast<float>(i % 5) / 4, z[i] = static_cast<float>(i);
  for (std::size_t r = 0; r < 16; ++r)
    for (std::size_t k = 0; k < 16; ++k) {
      expected[r * 16 + k] = z[r * 16 + k];
      for (std::size_t e = 0; e < 16; ++e) expected[r * 16 + k] += x[r * 16 + e] * y[e * 16 + k];
    }
  Launched got = run("INTERP:gpu", p.linear(), {z, x, y}, {1, 1, 1}, {32, 1, 1});
  EXPECT_EQ(got.error, "");
  EXPECT_EQ(got.buffers[0], expected);
}

TEST(Interp, GroupsHaveALimit) {
  GraphScope scope;
  Builder p;
  p.store(p.at(p.param(0, f32, 1), at(0)), float_const(f32, 1));
  expect_error(run("INTERP:gpu", p.linear(), {{0}}, {1, 1, 1}, {257, 1, 1}), {"257", "at most 256"});
  Builder q;
  q.store(q.at(q.local(0, f32, 1 << 20), at(0)), float_const(f32, 1));
  expect_error(run("INTERP:gpu", q.linear(), {}), {"local memory"});
}

}  // namespace
}  // namespace pg::test
