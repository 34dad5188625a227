// A run of a program's blocks on the caching allocator, from the built model to the steady state.
// A value: a run that has come to where memory gets scarce, or to where two programs part, is
// copied and goes on both ways.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "simulator/block_script.h"
#include "simulator/caching_allocator.h"
#include "simulator/memory.h"

namespace shardplan {

struct ReservedProfile {
  std::int64_t reserved = 0;   ///< the most that was held
  std::int64_t allocated = 0;  ///< the most that was in blocks
  std::int64_t requested = 0;  ///< the most that was asked for: blocks round up
  /// Of the last step: what blocks have beyond what was asked for, rests of segments that are too
  /// small to be split off. Where a phase asked for the most, and at its end.
  std::array<PhaseBytes, kPhaseCount> rests;
  std::int64_t built_rests = 0;  ///< of them those that were there when the model was built
  std::array<PhaseBytes, kPhaseCount> phases;  ///< of the last step, in blocks
  std::int64_t retries = 0;                    ///< times that cached segments had to be given back
  std::int64_t steps = 0;                      ///< until the steady state, or until memory ran out
  bool out_of_memory = false;
};

class BlockRun {
 public:
  /// `shift`: large requests that are not for states are by this share of theirs larger.
  BlockRun(std::shared_ptr<const BlockScript> script, const AllocatorOptions& options,
           double shift = 0, Chance chance = Chance::usual)
      : script_(std::move(script)),
        allocator_(options),
        shift_(shift),
        chance_(chance),
        stacks_(script_->stacks),
        clocks_(script_->rules) {}

  /// Where a run stops before it is done: ahead of a row, or of giving cached segments back.
  struct StopBefore {
    std::size_t row = static_cast<std::size_t>(-1);
    bool at_limit = false;
  };
  enum class Stop : std::uint8_t { done, at_row, at_limit };

  /// Runs up to the steady state, until memory runs out, or up to `before`.
  Stop run(const StopBefore& before);
  /// One step more, of a script whose model is built as this one's is. The first call builds the
  /// model. False: memory ran out.
  bool run_step(std::shared_ptr<const BlockScript> script);
  ReservedProfile profile() const;

  /// From here on; it is never below what the run holds.
  void set_limit(std::int64_t bytes) { allocator_.set_limit(bytes); }
  /// Goes on with another script, which has the same rows up to here.
  void follow(std::shared_ptr<const BlockScript> script);

 private:
  using BlockId = CachingAllocator::BlockId;
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  struct Live {
    BlockId block = CachingAllocator::kNone;
    Stream stream = Stream::compute;
    std::int64_t bytes = 0;
  };
  struct Loop {
    std::size_t begin = 0;  ///< the first row of the body
    std::int64_t left = 0;  ///< iterations after this one
    bool again = false;     ///< this is not the first
  };
  /// A block that was freed when its user had work up to `until`.
  struct Used {
    double until = 0;
    BlockId block = CachingAllocator::kNone;
  };
  /// What the host may wait for, the oldest first.
  struct Marks {
    struct Mark {
      double at = 0;
      std::int64_t count = 0;
    };
    std::deque<Mark> list;
    std::int64_t count = 0;
  };
  /// What a step meets: a block's number may be another one's later, its address tells.
  struct Place {
    BlockId block = CachingAllocator::kNone;
    std::int64_t bytes = 0, address = 0;
    bool operator==(const Place&) const = default;
  };

  std::int64_t bytes_for(const BlockRow& row) const;
  /// False, and nothing is done: cached segments would have to be given back.
  bool request(const BlockRow& row, bool stops_at_limit);
  void allocate(const BlockRow& row, CachingAllocator::BlockId block);
  void let_go(const BlockRow& row);
  void free_named(const BlockRow& row);
  void hand_over(const BlockRow& row);
  void free_oldest(const BlockRow& row);
  void free_size(const BlockRow& row);
  void free_total(std::vector<Live>& stack, const BlockRow& row);
  void give_back(const Live& live, const BlockRow& row);
  void move_clocks(const ClockMove& move);
  void throttle(const ClockMove& move);
  void take_passed();
  void take_all();
  void note_peak();
  void begin_phase(const BlockRow& row);
  void empty_cache();
  void enter(const BlockRow& row);
  void end_phase();
  void begin_repeat(const BlockRow& row);
  void end_repeat();
  void begin_step();
  void end_step();
  std::vector<Place> all_alive() const;

  std::shared_ptr<const BlockScript> script_;
  CachingAllocator allocator_;
  double shift_;
  Chance chance_;
  std::vector<std::vector<Live>> stacks_;
  std::vector<Loop> loops_;   ///< those under way, the outermost first
  std::int64_t repeats_ = 0;  ///< of them those that are past the first iteration
  std::array<std::deque<Used>, kStreams> used_;  ///< by Stream: blocks that wait for it
  std::vector<Marks> marks_;                     ///< by name
  double earliest_ = kNever;                     ///< of all in used_
  StreamClocks clocks_;
  std::size_t at_ = 0;
  std::array<PhaseBytes, kPhaseCount> phases_{};
  std::size_t phase_ = 0;
  std::int64_t step_ = 0;  ///< counted from 1; 0 while the model is built
  std::int64_t requested_ = 0, peak_requested_ = 0;
  std::array<std::int64_t, kPhaseCount> most_requested_{};
  std::array<PhaseBytes, kPhaseCount> rests_{};
  std::int64_t built_rests_ = 0;
  bool failed_ = false, done_ = false;
  std::vector<Place> before_;  ///< what was alive before this step
  std::int64_t peak_before_ = 0, held_before_ = 0, retries_before_ = 0;
};

}  // namespace shardplan
