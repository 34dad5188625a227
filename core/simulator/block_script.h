// What a program asks of the caching allocator, from the built model through one step, as a list
// of short rows: what runs every block of every layer reads no more than it needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "program/program.h"
#include "timing/clocks.h"

namespace shardplan {

struct BlockRow {
  enum class Kind : std::uint8_t {
    alloc,        ///< onto a stack of live blocks
    free_newest,  ///< of a stack whose blocks have a name of their own
    free_older,   ///< the one before the newest
    free_oldest,  ///< the oldest of this size and stream
    free_size,    ///< of a stack without a name: the newest of this size and stream
    hand_over,    ///< the newest of a stack goes to stack `to`, and stays where it is
    begin_step,   ///< before the first one, what building left cached may be given back
    begin_phase,
    end_phase,
    repeat,        ///< the rows before row `number` happen `amount` times
    end_repeat,    ///< the last of them
    only_in_step,  ///< the rows before row `number` belong to step `amount` alone
    first_time,    ///< the same, and to the first iteration of every repetition around them
    not_in_step,   ///< the same of all other steps
    by_chance,     ///< the rows before row `number` happen where Chance is `amount`
    empty_cache,   ///< cached segments are given back
    clock,         ///< move `number`: the host and the streams get on
  };
  Kind kind = Kind::alloc;
  Stream stream = Stream::compute;
  Stream used_on = Stream::compute;  ///< frees: another stream's, which the block waits for
  bool is_state = false;             ///< allocs: of a parameter, its gradient, master or states
  std::int32_t number = 0;           ///< a stack, a phase or a row
  std::int32_t to = 0;               ///< hand_over: another stack
  std::int64_t amount = 0;           ///< bytes, where nothing else is said
  friend bool operator==(const BlockRow&, const BlockRow&) = default;
};

struct BlockScript {
  std::vector<BlockRow> rows;  ///< of building the model, then of a step
  std::size_t step = 0;        ///< the step's first row
  std::size_t stacks = kCategoryCount;
  bool keeps_build_cache = false;
  std::int64_t last_own = 0;  ///< the last step that does what others do not
  bool has_chances = false;   ///< rows that are there by chance
  // What the clocks need; nothing where no block waits for a stream.
  ClockRules rules;
  std::vector<ClockMove> moves;
};

/// Some of its blocks are free only when a stream has come to where it was.
bool waits_for_streams(const Program& program);

/// `pace`: of the program, if it waits for streams.
BlockScript block_script(const Program& program, const Pace& pace);

bool alike(const BlockScript& a, const BlockScript& b);

/// The first row in which the two differ; the length of the shorter one when neither does before.
std::size_t first_difference(const BlockScript& a, const BlockScript& b);

}  // namespace shardplan
