// A linear program decoded for the interpreter: one instruction a node, operands resolved to places in a
// frame of 64-bit words. decode.cpp makes it, execute.cpp runs it.
//
// A word holds an integer or bool as eval_scalar keeps it, a float by its bits in its own format, so that
// what is only moved keeps every bit. A value has a word for each lane.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ir/target.h"

namespace pg::runtime::interp {

enum class Step : std::uint8_t {
  Alu,
  Bitcast,
  Where,
  Move,
  Splat,
  Reduce,
  Load,
  Store,
  Begin,
  End,
  If,
  Barrier,
  Wmma,
};

struct Instruction {
  Step step = Step::Move;
  Op op = Op::Const;         // of Alu and Reduce
  DType to = DType::Void;    // of the result, or of the element loaded or stored
  DType from = DType::Void;  // of the operands
  std::uint16_t lanes = 1;   // of the result; of Reduce and Store, of the operand
  bool scattered = false;    // an offset for each lane
  bool wide_gate = false;    // a gate for each lane
  std::int32_t at = 0;       // place in the Linear, for messages
  std::int32_t dst = -1;     // words
  std::int32_t src[3] = {-1, -1, -1};
  std::int32_t gate = -1;  // -1: none
  std::int32_t offset = -1;
  std::int32_t buffer = -1;  // index into Code::buffers
  std::int32_t target = -1;  // of a jump
  TensorCore core{};         // of Wmma
};

/// Memory that instructions access: an argument, or a Local.
struct BufferUse {
  bool local = false;
  std::int64_t slot = 0;
  std::int64_t bytes = 0;  // of a Local
};

/// A word of the frame to be set when a work-item begins.
struct Argument {
  enum Kind : std::uint8_t { Scalar, Thread, Group, Local } kind;
  std::int32_t index;  // slot, or axis
  std::int32_t word;
  DType dtype;
};

struct Code {
  std::string name;
  UOp linear;  // keeps the nodes that messages speak of
  std::vector<Instruction> instructions;
  std::vector<std::uint64_t> frame;  // as it is at the beginning, constants in place
  std::vector<BufferUse> buffers;
  std::vector<Argument> arguments;
  int buffer_slots = 0;  // one more than the highest
  int scalar_slots = 0;
  std::int64_t local_bytes = 0;

  /// "[interp] kernel: 12: Load.f32x4(...)", where messages begin.
  std::string where(const Instruction& i) const;
};

/// Within a GraphScope. InternalError on what no program may hold.
Code decode(Ref linear, std::string name);

/// Memory as the interpreter checks it: nothing outside is touched.
struct Memory {
  std::byte* data;
  std::int64_t bytes;
  bool writable;
};

/// How many run: threads on a device without groups, else groups and work-items in one.
struct Grid {
  std::int64_t threads = 1;
  std::int64_t groups[3] = {1, 1, 1};
  std::int64_t items[3] = {1, 1, 1};
  int warp = 32;
};

/// Runs all threads one after the other, or all groups, the items of one in step from barrier to barrier.
/// InternalError at the first access outside its buffer, race, read of what was never written, or barrier
/// that not all items reach.
void execute(const Code& code, std::span<const Memory> buffers, std::span<const std::int64_t> scalars,
             const Grid& grid);

}  // namespace pg::runtime::interp
