// Decisions of the scheduler on small calls: what shares a kernel, who runs before whom, which writes go in
// place, and where temporaries lie.
#include "schedule/schedule.h"

#include <gtest/gtest.h>

#include "ir/parse.h"
#include "ir/print.h"
#include "rules/spec.h"

namespace pg::schedule {
namespace {

// A schedule of a call written as text; kernels by number, in order.
class Scheduled {
 public:
  explicit Scheduled(std::string_view text) {
    GraphScope scope;
    UOp call = parse(text);
    rules::verify(call, rules::Stage::Call, "test");
    schedule_ = schedule(call, "CPU");
    rules::verify(schedule_.linear, rules::Stage::Schedule, "test");
  }
  std::size_t kernels() const { return schedule_.linear->nsrc; }
  bool is_copy(std::size_t k) const { return call(k).src(0).is(Op::Copy); }
  // Slots a kernel names, what it writes first.
  std::vector<int> slots(std::size_t k) const {
    std::vector<int> out;
    for (Node* arg : call(k).srcs().subspan(1))
      if (arg->op == Op::Param) out.push_back(static_cast<int>(arg->arg.i));
    return out;
  }
  int writes(std::size_t k) const { return slots(k)[0]; }
  bool reads(std::size_t k, int slot) const {
    std::vector<int> s = slots(k);
    return std::find(s.begin() + 1, s.end(), slot) != s.end();
  }
  int output(std::size_t root) const { return schedule_.outputs[root]; }
  std::int64_t offset(int slot) const {
    return schedule_.buffers[static_cast<std::size_t>(slot)].arena_offset;
  }
  const Schedule& all() const { return schedule_; }
  std::string text() const {
    GraphScope scope;
    return print(schedule_.linear);
  }

 private:
  Ref call(std::size_t k) const { return schedule_.linear.ref().src(static_cast<int>(k)); }
  Schedule schedule_;
};

constexpr std::string_view kArguments = R"(
  d = Device["CPU"]
  x = Param.f32[0]((8, 16), d)
  y = Param.f32[1]((16,), d)
)";
std::string with(std::string_view body) { return std::string(kArguments) + std::string(body); }

// --- fusion

TEST(Schedule, AChainAndItsReductionShareLoops) {
  Scheduled s(with("Sink(Sqrt(Reduce[Add, 1]((x + 1.0)*y)) * 2.0)"));
  EXPECT_EQ(s.kernels(), 1u) << s.text();
  EXPECT_TRUE(s.all().arena_bytes.empty());
  EXPECT_EQ(s.output(0), 2);
}

TEST(Schedule, AReductionIsNotComputedAgainForEachReader) {
  // Each element of the result needs the sum of its row, which all of the row share.
  Scheduled s(with("Sink(x / Expand(Reduce[Add, 1](x), (8, 16)))"));
  EXPECT_EQ(s.kernels(), 2u) << s.text();
  EXPECT_TRUE(s.reads(1, s.writes(0)));
}

TEST(Schedule, CheapWorkIsDoneAgainRatherThanStored) {
  Scheduled s(with(R"(
    a = x + 1.0
    Sink(a*2.0, a*3.0))"));
  EXPECT_EQ(s.kernels(), 2u) << s.text();
  EXPECT_TRUE(s.all().arena_bytes.empty());
}

TEST(Schedule, CostlyWorkThatManyReadIsStored) {
  Scheduled s(R"(
    d = Device["CPU"]
    w = Param.f32[0]((64,), d)
    v = Param.f32[1]((4096, 64), d)
    e = Expand(Sin(Sin(w)), (4096, 64))
    Sink(v*e))");
  EXPECT_EQ(s.kernels(), 2u) << s.text();
  Scheduled cheap(R"(
    d = Device["CPU"]
    w = Param.f32[0]((64,), d)
    v = Param.f32[1]((4096, 64), d)
    Sink(v*Expand(w + 1.0, (4096, 64))))");
  EXPECT_EQ(cheap.kernels(), 1u) << cheap.text();
}

TEST(Schedule, PositionsAndBordersAreNeverStored) {
  Scheduled s(R"(
    d = Device["CPU"]
    x = Param.f32[0]((8, 16), d)
    hot = CmpEq(Expand(Reshape(Arange.i32((16,)), (1, 16)), (8, 16)), Expand(3:i32, (8, 16)))
    Sink(Pad(Where(hot, x, Expand(0.0:f32, (8, 16))), (10, 16), (1, 0))))");
  EXPECT_EQ(s.kernels(), 1u) << s.text();
  EXPECT_TRUE(s.all().arena_bytes.empty());
}

TEST(Schedule, ContiguousIsStored) {
  Scheduled s(with("Sink(Contiguous(x + 1.0)*2.0)"));
  EXPECT_EQ(s.kernels(), 2u) << s.text();
}

TEST(Schedule, ARootThatIsAnArgumentTakesNoKernel) {
  Scheduled s(with("Sink(x, Reshape(x, (128,)), y*2.0)"));
  EXPECT_EQ(s.kernels(), 1u) << s.text();
  EXPECT_EQ(s.output(0), 0);
  EXPECT_EQ(s.output(1), 0);
}

TEST(Schedule, EqualKernelsAreOneNode) {
  Scheduled s(R"(
    d = Device["CPU"]
    x = Param.f32[0]((8,), d)
    y = Param.f32[1]((8,), d)
    Sink(x + 1.0, y + 1.0))");
  ASSERT_EQ(s.kernels(), 2u);
  EXPECT_EQ(s.all().linear->src[0]->src[0], s.all().linear->src[1]->src[0]);
}

TEST(Schedule, AnotherDeviceIsACopy) {
  Scheduled s(with(R"(Sink(Copy["CPU:1"](x + 1.0) * 2.0))"));
  ASSERT_EQ(s.kernels(), 3u) << s.text();
  EXPECT_FALSE(s.is_copy(0));
  EXPECT_TRUE(s.is_copy(1));
  EXPECT_EQ(s.all().buffers[static_cast<std::size_t>(s.output(0))].device, "CPU:1");
}

TEST(Schedule, WhatNoSourcePlacesIsStoredWhereItIsRead) {
  Scheduled s(R"(
    w = Param.f32[0]((8,), Device["CPU:1"])
    zeros = Expand(0.0:f32, (8,))
    part = After(zeros, Store(Shrink(zeros, (4,), (2,)), Expand(1.0:f32, (4,))))
    Sink(Sqrt(part)*w))");
  for (const BufferInfo& b : s.all().buffers) EXPECT_EQ(b.device, "CPU:1") << s.text();
}

TEST(Schedule, ResultsOfOneCallMayBeOnSeveralDevices) {
  Scheduled s(R"(
    zeros = Expand(0.0:f32, (8,))
    part = After(zeros, Store(Shrink(zeros, (4,), (2,)), Expand(1.0:f32, (4,))))
    Sink(part, Copy["CPU:1"](zeros)))");
  EXPECT_EQ(s.all().buffers[static_cast<std::size_t>(s.output(0))].device, "CPU") << s.text();
  EXPECT_EQ(s.all().buffers[static_cast<std::size_t>(s.output(1))].device, "CPU:1") << s.text();
}

// --- writes

// Slots with the mark are given up by the caller: writes may take their storage.
constexpr std::string_view kDonor = "w = Param.f32[4294967296]((8, 16), d)\n";

TEST(Schedule, AWriteToADonatedArgumentIsInPlace) {
  std::string donor = "d = Device[\"CPU\"]\nv = Param.f32[1]((16,), d)\n" + std::string(kDonor);
  Scheduled s(donor + "Sink(After(w, Store(w, w + v)))");
  EXPECT_EQ(s.kernels(), 1u) << s.text();
  EXPECT_EQ(s.output(0), 0);
}

TEST(Schedule, AWriteToAKeptArgumentIsFresh) {
  Scheduled s(with("Sink(After(x, Store(x, x + y)))"));
  EXPECT_EQ(s.kernels(), 1u) << s.text();
  EXPECT_EQ(s.output(0), 2);
  // Through a view the rest is copied first.
  Scheduled part(with("Sink(After(x, Store(Shrink(x, (1, 16), (2, 0)), Reshape(y, (1, 16)))))"));
  EXPECT_EQ(part.kernels(), 2u) << part.text();
  EXPECT_EQ(part.output(0), 2);
  EXPECT_EQ(part.writes(0), 2);
  EXPECT_EQ(part.writes(1), 2);
}

TEST(Schedule, ReadersRunBeforeTheWriteThatDestroysWhatTheyRead) {
  std::string donor = "d = Device[\"CPU\"]\nv = Param.f32[1]((16,), d)\n" + std::string(kDonor);
  Scheduled s(donor + "Sink(After(w, Store(w, Expand(v, (8, 16)))), w*2.0, Reduce[Add, 0, 1](w))");
  ASSERT_EQ(s.kernels(), 3u) << s.text();
  EXPECT_EQ(s.writes(2), 0);
  EXPECT_EQ(s.output(0), 0);
}

TEST(Schedule, AReaderOfTheNewContentsRunsAfterIt) {
  std::string donor = "d = Device[\"CPU\"]\nv = Param.f32[1]((16,), d)\n" + std::string(kDonor);
  Scheduled s(donor + "n = After(w, Store(w, Expand(v, (8, 16))))\nSink(n, n*2.0)");
  ASSERT_EQ(s.kernels(), 2u) << s.text();
  EXPECT_EQ(s.writes(0), 0);
  EXPECT_TRUE(s.reads(1, 0));
}

TEST(Schedule, AWriteThatReadsWhatItOverwritesElsewhereIsStaged) {
  std::string donor = "d = Device[\"CPU\"]\n" + std::string(kDonor);
  Scheduled s(donor + "Sink(After(w, Store(w, Flip[1](w))))");
  EXPECT_NE(s.output(0), 0) << s.text();
  Scheduled same(donor + "Sink(After(w, Store(Flip[1](w), Flip[1](w)*2.0)))");
  EXPECT_EQ(same.output(0), 0) << same.text();
}

// Each needs the old contents of the other: one of them cannot be in place.
TEST(Schedule, CrossedWritesAreNoCircle) {
  Scheduled s(R"(
    d = Device["CPU"]
    a = Param.f32[4294967296]((8,), d)
    b = Param.f32[4294967297]((8,), d)
    Sink(After(a, Store(a, b + 1.0)), After(b, Store(b, a + 1.0))))");
  EXPECT_EQ(s.kernels(), 2u) << s.text();
  EXPECT_EQ((s.output(0) == 0) + (s.output(1) == 1), 1);
}

// --- memory

// In a chain of stored values each lives until the next one is made.
TEST(Schedule, TemporariesShareMemory) {
  Scheduled s(with(R"(
    a = Contiguous(x + 1.0)
    b = Contiguous(Flip[1](a)*2.0)
    c = Contiguous(Flip[2](b)*3.0)
    e = Contiguous(Flip[1](c)*4.0)
    Sink(Flip[2](e)*5.0))"));
  ASSERT_EQ(s.kernels(), 5u) << s.text();
  std::vector<std::int64_t> at;
  for (std::size_t k = 0; k < 4; ++k) at.push_back(s.offset(s.writes(k)));
  EXPECT_EQ(at[0], at[2]);
  EXPECT_EQ(at[1], at[3]);
  EXPECT_NE(at[0], at[1]);
  ASSERT_EQ(s.all().arena_bytes.size(), 1u);
  EXPECT_EQ(s.all().arena_bytes[0], 2 * 8 * 16 * 4);
  EXPECT_EQ(s.offset(s.output(0)), -1);  // a result has memory of its own
}

TEST(Schedule, WhatIsReadLaterKeepsItsMemory) {
  Scheduled s(with(R"(
    a = Contiguous(x + 1.0)
    b = Contiguous(Flip[1](a)*2.0)
    c = Contiguous(Flip[2](b)*3.0)
    Sink(Flip[1](c)*Flip[2](a)))"));
  ASSERT_EQ(s.kernels(), 4u) << s.text();
  std::vector<std::int64_t> at;
  for (std::size_t k = 0; k < 3; ++k) at.push_back(s.offset(s.writes(k)));
  EXPECT_NE(at[0], at[1]);
  EXPECT_NE(at[0], at[2]);
  EXPECT_NE(at[1], at[2]);
}

}  // namespace
}  // namespace pg::schedule
