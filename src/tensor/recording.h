// A recording of one call of a function: a list of engine runs whose storages are slots, and what Cells, the
// function's results and gradients are afterwards. `record.cpp` makes it, `replay.cpp` runs it, `jit.cpp`
// keeps it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <absl/container/flat_hash_map.h>

#include "engine/engine.h"
#include "tensor/watch.h"
#include <pangrad/jit.h>

namespace pg::detail {

inline constexpr int kNone = -1;

/// A number that runs take at each launch.
struct RecordedScalar {
  std::int64_t value = 0;      // a constant; of a random offset: relative to where the body began
  Device generator = nullptr;  // of which device's generator it is an offset
  int bind = kNone;            // which of the call's bound Variables it is
};

/// One realize of the body.
struct RecordedRun {
  std::shared_ptr<const engine::Run> run;
  std::vector<int> inputs, outputs;  // slots
  std::vector<int> in_place;         // by output: the slot whose storage it takes, or kNone
  std::vector<int> overwritten;      // slots whose storage is written, also where nothing is left of it
  std::vector<RecordedScalar> scalars;
};

struct Recording {
  /// A storage.
  struct Slot {
    DType dtype;
    UOp shape;
    std::int64_t elements;
    std::string device;
    bool made = false;  // by a run
    int base = kNone;   // of a range of another slot: which, and where it begins
    std::int64_t start = 0;
    UOp constant;  // what is always there
  };
  /// A Cell that the body found: of an argument, reached otherwise, or the gradient of another.
  struct Place {
    int argument = kNone;
    int gradient_of = kNone;
    Tensor cell;       // reached otherwise than as argument (besides, if it is one)
    int slot = kNone;  // its contents when the body began, if they are used
    UOp constant;      // they are this constant, which is part of the runs
    DType dtype;
    UOp shape;
    bool marked = false, had_grad = false;
  };
  /// A Cell that the body made and that is seen afterwards.
  struct Made {
    int slot = kNone;
    UOp constant;  // if it has no slot
    UOp shape;
    Device device = nullptr;
  };
  /// A tensor: a Cell, through movements; nothing if neither is named.
  struct Value {
    int place = kNone, made = kNone;
    UOp chain;  // null: the whole Cell
  };
  struct Write {
    int place, slot;
    UOp shape;
  };
  struct Gradient {
    int place;
    Value value;  // nothing: it is gone
  };
  struct Draws {
    Device device;
    std::int64_t words;
    std::uint64_t key;
  };

  std::vector<UOp> binds;  // the bound Variables of the call, as they were
  std::vector<Slot> slots;
  std::vector<Place> places;
  std::vector<RecordedRun> runs;
  std::vector<Write> writes;
  std::vector<std::pair<int, bool>> marks;  // places that are, or no longer are, gradient targets afterwards
  std::vector<Made> made;
  std::vector<Gradient> gradients;
  std::vector<Value> results;
  std::vector<std::size_t> lengths;
  std::vector<Draws> draws;
  bool takes_gradients = false;
  HandleGuard handles;  // those of the program that the body read
};

/// A call: what it was given, and the bound Variables in it, each once.
struct Call {
  const JitCall& given;
  std::vector<UOp> binds;
};

/// Runs the body and records it. Null with results if this call cannot be recorded but a later one may.
/// Throws what the body throws, and CaptureError.
std::unique_ptr<Recording> record(const Call& call, const Captures::Body& body, JitResults& results);
/// Runs a recording. False if it does not hold any more; then nothing has happened.
bool replay(const Recording& recording, const Call& call, JitResults& results);

/// The Buffer leaf that a node's value is in, or null.
inline Ref stored_leaf(Ref node) {
  if (node.is(Op::Buffer)) return node;
  return node->cold ? node->cold->materialized.ref() : Ref();
}
/// Gives arguments storage if they have none, so that a recording need not know their contents.
void store_arguments(const Call& call);
/// Puts the constant that a Cell holds into storage. Not inside a GraphScope.
void store_constant(Cell& cell);
/// What the body made and returns has no history; Cells up to a serial are older.
void end_histories(const JitResults& results, std::uint64_t born_before);

}  // namespace pg::detail
