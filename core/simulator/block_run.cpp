#include "simulator/block_run.h"

#include <algorithm>
#include <cassert>
#include <span>

#include "base/units.h"

namespace shardplan {
namespace {

/// Steps that are run at most: the allocator's state repeats after two or three.
constexpr std::int64_t kMostSteps = 5;

constexpr std::int64_t kShifted = kMiB;  ///< requests from here on come from the large pool

}  // namespace

BlockRun::Stop BlockRun::run(const StopBefore& before) {
  using Kind = BlockRow::Kind;
  const std::span<const BlockRow> rows = script_->rows;
  const std::size_t ahead = std::min(before.row, rows.size());
  while (!done_) {
    if (at_ >= ahead) {
      if (at_ == before.row) return Stop::at_row;
      if (at_ == rows.size()) {
        end_step();
        continue;
      }
    }
    switch (const BlockRow& row = rows[at_]; row.kind) {
      case Kind::alloc:
        if (!request(row, before.at_limit)) return Stop::at_limit;
        ++at_;
        break;
      case Kind::free_newest:
      case Kind::free_older:
      case Kind::free_oldest:
      case Kind::free_size:
      case Kind::hand_over:
        let_go(row);
        ++at_;
        break;
      case Kind::begin_step:
        begin_step();
        break;
      case Kind::begin_phase:
        begin_phase(row);
        ++at_;
        break;
      case Kind::end_phase:
        end_phase();
        ++at_;
        break;
      case Kind::repeat:
        begin_repeat(row);
        break;
      case Kind::end_repeat:
        end_repeat();
        break;
      case Kind::empty_cache:
        empty_cache();
        break;
      case Kind::clock:
        move_clocks(script_->moves[static_cast<std::size_t>(row.number)]);
        ++at_;
        break;
      case Kind::by_chance:
      case Kind::only_in_step:
      case Kind::first_time:
      case Kind::not_in_step:
        enter(row);
        break;
    }
  }
  return Stop::done;
}

bool BlockRun::run_step(std::shared_ptr<const BlockScript> script) {
  const bool built = step_ > 0;
  follow(std::move(script));
  if (built) at_ = script_->step;
  run({script_->rows.size()});
  return !failed_;
}

std::int64_t BlockRun::bytes_for(const BlockRow& row) const {
  if (shift_ == 0 || row.is_state || row.amount < kShifted) return row.amount;
  return static_cast<std::int64_t>(static_cast<double>(row.amount) * (1 + shift_));
}

bool BlockRun::request(const BlockRow& row, bool stops_at_limit) {
  take_passed();
  const std::int64_t bytes = bytes_for(row);
  BlockId block = allocator_.try_allocate(bytes, row.stream);
  if (block == CachingAllocator::kNone) {
    if (stops_at_limit) return false;
    take_all();
    block = allocator_.allocate_anew(bytes, row.stream);
  }
  allocate(row, block);
  return true;
}

ReservedProfile BlockRun::profile() const {
  ReservedProfile profile;
  profile.reserved = allocator_.peak_reserved();
  profile.allocated = allocator_.peak_allocated();
  profile.requested = peak_requested_;
  profile.rests = rests_;
  profile.built_rests = built_rests_;
  profile.phases = phases_;
  profile.retries = allocator_.retries();
  profile.steps = step_;
  profile.out_of_memory = failed_;
  return profile;
}

void BlockRun::follow(std::shared_ptr<const BlockScript> script) {
  script_ = std::move(script);
  stacks_.resize(std::max(stacks_.size(), script_->stacks));
}

void BlockRun::allocate(const BlockRow& row, BlockId block) {
  if (block == CachingAllocator::kNone) {
    failed_ = done_ = true;
    return;
  }
  stacks_[static_cast<std::size_t>(row.number)].push_back({block, row.stream, row.amount});
  requested_ += row.amount;
  peak_requested_ = std::max(peak_requested_, requested_);
  note_peak();
}

void BlockRun::note_peak() {
  PhaseBytes& bytes = phases_[phase_];
  bytes.peak = std::max(bytes.peak, allocator_.allocated());
  if (requested_ < most_requested_[phase_]) return;
  most_requested_[phase_] = requested_;
  rests_[phase_].peak = allocator_.allocated() - requested_;
}

void BlockRun::begin_phase(const BlockRow& row) {
  phase_ = static_cast<std::size_t>(row.number);
  note_peak();
}

void BlockRun::empty_cache() {
  take_all();
  allocator_.empty_cache();
  ++at_;
}

/// Rows of some steps or by some chance only: goes on with them, or behind them.
void BlockRun::enter(const BlockRow& row) {
  const bool by_chance = row.kind == BlockRow::Kind::by_chance;
  const bool named = row.amount == (by_chance ? static_cast<std::int64_t>(chance_) : step_);
  const bool only = row.kind != BlockRow::Kind::not_in_step;
  const bool late = row.kind == BlockRow::Kind::first_time && repeats_ > 0;
  at_ = named == only && !late ? at_ + 1 : static_cast<std::size_t>(row.number);
}

void BlockRun::end_phase() {
  phases_[phase_].end = allocator_.allocated();
  rests_[phase_].end = allocator_.allocated() - requested_;
}

void BlockRun::give_back(const Live& live, const BlockRow& row) {
  requested_ -= live.bytes;
  if (row.used_on == row.stream) {
    allocator_.free(live.block);
    return;
  }
  allocator_.set_aside(live.block);
  const double until = clocks_.at.of(row.used_on);
  used_[static_cast<std::size_t>(row.used_on)].push_back({until, live.block});
  earliest_ = std::min(earliest_, until);
}

void BlockRun::move_clocks(const ClockMove& move) {
  if (move.kind == Event::Kind::throttle) {
    throttle(move);
    return;
  }
  if (move.kind != Event::Kind::mark) {
    clocks_.move(move);
    return;
  }
  const auto name = static_cast<std::size_t>(move.name);
  if (marks_.size() <= name) marks_.resize(name + 1);
  marks_[name].list.push_back({clocks_.at.of(move.stream), move.count});
  marks_[name].count += move.count;
}

void BlockRun::throttle(const ClockMove& move) {
  const auto name = static_cast<std::size_t>(move.name);
  if (marks_.size() <= name) return;
  Marks& marks = marks_[name];
  const auto forget = [&] {
    marks.count -= marks.list.front().count;
    marks.list.pop_front();
  };
  if (!move.keeps_passed)
    while (!marks.list.empty() && marks.list.front().at <= clocks_.at.host) forget();
  while (marks.count >= move.count) {
    clocks_.host_waits(marks.list.front().at);
    forget();
    if (move.keeps_passed) return;
  }
}

/// Every request asks first what the streams have done (process_events). A stream's blocks come
/// back in the order in which they were freed.
void BlockRun::take_passed() {
  if (clocks_.at.host < earliest_) return;
  earliest_ = kNever;
  for (std::deque<Used>& used : used_) {
    for (; !used.empty() && used.front().until <= clocks_.at.host; used.pop_front())
      allocator_.give_back(used.front().block);
    if (!used.empty()) earliest_ = std::min(earliest_, used.front().until);
  }
}

/// Before cached segments go back to the driver the host waits for every block that is used
/// (synchronize_and_free_events).
void BlockRun::take_all() {
  for (const std::deque<Used>& used : used_)
    if (!used.empty()) clocks_.host_waits(used.back().until);
  take_passed();
}

void BlockRun::let_go(const BlockRow& row) {
  if (row.kind == BlockRow::Kind::free_size) return free_size(row);
  if (row.kind == BlockRow::Kind::hand_over) return hand_over(row);
  free_named(row);
}

void BlockRun::free_named(const BlockRow& row) {
  if (row.kind == BlockRow::Kind::free_oldest) return free_oldest(row);
  std::vector<Live>& stack = stacks_[static_cast<std::size_t>(row.number)];
  const std::size_t from_end = row.kind == BlockRow::Kind::free_older ? 2 : 1;
  assert(stack.size() >= from_end && "freed before it was allocated");
  if (stack.size() < from_end) return;
  const auto at = stack.end() - static_cast<std::ptrdiff_t>(from_end);
  give_back(*at, row);
  if (from_end == 2) *at = stack.back();
  stack.pop_back();
}

void BlockRun::hand_over(const BlockRow& row) {
  std::vector<Live>& from = stacks_[static_cast<std::size_t>(row.number)];
  assert(!from.empty() && "handed over before it was allocated");
  if (from.empty()) return;
  stacks_[static_cast<std::size_t>(row.to)].push_back(from.back());
  from.pop_back();
}

void BlockRun::free_oldest(const BlockRow& row) {
  std::vector<Live>& stack = stacks_[static_cast<std::size_t>(row.number)];
  const auto oldest = std::ranges::find_if(stack, [&](const Live& live) {
    return live.bytes == row.amount && live.stream == row.stream;
  });
  assert(oldest != stack.end() && "freed before it was allocated");
  if (oldest == stack.end()) return;
  give_back(*oldest, row);
  stack.erase(oldest);
}

void BlockRun::free_size(const BlockRow& row) {
  std::vector<Live>& stack = stacks_[static_cast<std::size_t>(row.number)];
  for (std::size_t i = stack.size(); i-- > 0;) {
    if (stack[i].bytes != row.amount || stack[i].stream != row.stream) continue;
    give_back(stack[i], row);
    stack.erase(stack.begin() + static_cast<std::ptrdiff_t>(i));
    return;
  }
  free_total(stack, row);
}

/// A total of several blocks: the newest ones of its pool, then of others. What is less than a
/// block shortens it only in the program's account: the allocator cannot give back a part.
void BlockRun::free_total(std::vector<Live>& stack, const BlockRow& row) {
  std::int64_t left = row.amount;
  for (const bool own : {true, false})
    for (std::size_t i = stack.size(); left > 0 && i-- > 0;) {
      Live& live = stack[i];
      if ((live.stream == row.stream) != own) continue;
      const std::int64_t bytes = std::min(live.bytes, left);
      left -= bytes;
      if (bytes < live.bytes) {
        live.bytes -= bytes;
        requested_ -= bytes;
        return;
      }
      give_back(live, row);
      stack.erase(stack.begin() + static_cast<std::ptrdiff_t>(i));
    }
  assert(left == 0 && "more is freed than was allocated");
}

void BlockRun::begin_repeat(const BlockRow& row) {
  if (row.amount <= 0) {
    at_ = static_cast<std::size_t>(row.number);
    return;
  }
  loops_.push_back({++at_, row.amount - 1});
}

void BlockRun::end_repeat() {
  Loop& loop = loops_.back();
  if (loop.left > 0) {
    --loop.left;
    if (!std::exchange(loop.again, true)) ++repeats_;
    at_ = loop.begin;
    return;
  }
  if (loop.again) --repeats_;
  loops_.pop_back();
  ++at_;
}

/// A step's time begins and ends with everything done (timing/timeline.h).
void BlockRun::begin_step() {
  take_all();
  clocks_ = StreamClocks(script_->rules);
  for (Marks& marks : marks_)
    for (Marks::Mark& mark : marks.list) mark.at = 0;
  if (step_ == 0) built_rests_ = allocator_.allocated() - requested_;
  if (step_++ == 0 && !script_->keeps_build_cache) allocator_.empty_cache();
  phases_ = {};
  rests_ = {};
  most_requested_ = {};
  peak_before_ = allocator_.peak_reserved();
  held_before_ = allocator_.reserved();
  retries_before_ = allocator_.retries();
  ++at_;
}

/// Where nothing was granted or given back and the same blocks are alive as before the step, the
/// allocator is as it was, and would do the same again.
void BlockRun::end_step() {
  at_ = script_->step;
  const std::int64_t settled = std::max<std::int64_t>(2, script_->last_own + 1);
  done_ = step_ == kMostSteps || (step_ > settled && allocator_.peak_reserved() == peak_before_);
  if (done_) return;
  std::vector<Place> now = all_alive();
  const bool repeats =
      allocator_.reserved() == held_before_ && allocator_.retries() == retries_before_;
  done_ = repeats && now == before_ && step_ >= script_->last_own;
  before_ = std::move(now);
}

/// Stack by stack.
std::vector<BlockRun::Place> BlockRun::all_alive() const {
  std::vector<Place> all;
  for (const std::vector<Live>& stack : stacks_) {
    for (const Live& live : stack)
      all.push_back({live.block, live.bytes, allocator_.address_of_block(live.block)});
    all.emplace_back();  // tells the stacks apart
  }
  return all;
}

}  // namespace shardplan
