#include "simulator/reserved.h"

#include <algorithm>
#include <cassert>
#include <optional>
#include <vector>

namespace shardplan {
namespace {

/// Steps that are run at most: the allocator's state repeats after two or three.
constexpr std::int64_t kMostSteps = 5;
/// Micro-batches between the first and the last that are run: they are alike.
constexpr std::int64_t kMostMicroBatches = 2;

class Runner {
 public:
  Runner(const Program& program, const AllocatorOptions& options)
      : program_(program), events_(program.events), allocator_(options), ends_(events_.size(), 0) {
    find_ends();
  }

  ReservedProfile run() {
    ReservedProfile profile;
    build();
    allocator_.empty_cache();
    std::vector<Live> before;
    while (!failed_ && profile.steps < kMostSteps) {
      const std::int64_t peak = allocator_.peak_reserved();
      const std::int64_t held = allocator_.reserved(), retries = allocator_.retries();
      step_ = ++profile.steps;
      phases_ = {};
      run_range(0, events_.size());
      if (profile.steps > 2 && allocator_.peak_reserved() == peak) break;
      // Where nothing was granted or given back and the same blocks are alive as before the step,
      // the allocator is as it was, and would do the same again.
      std::vector<Live> now = all_alive();
      const bool repeats = allocator_.reserved() == held && allocator_.retries() == retries;
      if (repeats && now == before && !does_more_later()) break;
      before = std::move(now);
    }
    profile.reserved = allocator_.peak_reserved();
    profile.requested = peak_requested_;
    profile.phases = phases_;
    profile.allocated = allocator_.peak_allocated();
    profile.retries = allocator_.retries();
    profile.out_of_memory = failed_;
    return profile;
  }

 private:
  using BlockId = CachingAllocator::BlockId;

  struct Live {
    BlockId block = CachingAllocator::kNone;
    std::int64_t bytes = 0;
    Stream pool = Stream::compute;
    std::int64_t address = 0;  ///< of `block`, which may be another one's number later
    bool operator==(const Live&) const = default;
  };

  /// Stack by stack: what the next step meets.
  std::vector<Live> all_alive() const {
    std::vector<Live> all;
    const auto add = [&](const std::vector<Live>& stack) {
      all.insert(all.end(), stack.begin(), stack.end());
      all.emplace_back();  // tells the stacks apart
    };
    for (const std::vector<Live>& stack : named_) add(stack);
    for (const std::vector<Live>& stack : unnamed_) add(stack);
    return all;
  }

  bool does_more_later() const {
    return std::any_of(program_.once.begin(), program_.once.end(),
                       [&](const Once& once) { return once.step > step_; });
  }

  void find_ends() {
    std::vector<std::size_t> open;
    for (std::size_t i = 0; i < events_.size(); ++i) {
      if (events_[i].kind == Event::Kind::begin_repeat) open.push_back(i);
      if (events_[i].kind == Event::Kind::end_repeat) {
        ends_[open.back()] = i;
        open.pop_back();
      }
    }
  }

  bool is_lazy(Category category) const {
    for (const Once& once : program_.once)
      for (const Event& e : once.events)
        if (once.step == 1 && e.category == category) return true;
    return false;
  }

  void build() {
    if (!program_.build.empty()) {
      play(program_.build);
      return;
    }
    std::vector<Event> built;
    for (const Event& e : program_.resident)
      if (!is_lazy(e.category)) built.push_back(e);
    play(built);
  }

  /// Neighbours of equal count are the tensors of layers: all of one layer, then the next one's.
  void play(const std::vector<Event>& list) {
    for (std::size_t i = 0; i < list.size();) {
      std::size_t end = i + 1;
      while (end < list.size() && list[end].count == list[i].count && list[i].count > 1) ++end;
      for (std::int64_t k = 0; k < list[i].count; ++k) {
        for (std::size_t j = i; j < end; ++j) {
          if (list[j].kind == Event::Kind::free) {
            free(list[j]);
          } else {
            allocate(list[j]);
          }
        }
      }
      i = end;
    }
  }

  void allocate(const Event& e) {
    if (failed_) return;
    const BlockId block = allocator_.allocate(e.bytes, e.stream);
    if (block == CachingAllocator::kNone) {
      failed_ = true;
      return;
    }
    stack_of(e).push_back({block, e.bytes, e.stream, allocator_.address_of_block(block)});
    requested_ += e.bytes;
    peak_requested_ = std::max(peak_requested_, requested_);
    note_peak();
  }

  void note_peak() {
    PhaseBytes& bytes = phases_[phase_];
    bytes.peak = std::max(bytes.peak, allocator_.allocated());
  }

  std::vector<Live>& stack_of(const Event& e) {
    if (e.name == kUnnamed) return unnamed_[index_of(e.category)];
    const auto name = static_cast<std::size_t>(e.name);
    if (name >= named_.size()) named_.resize(name + 1);
    return named_[name];
  }

  void free(const Event& e) {
    if (failed_) return;
    std::vector<Live>& stack = stack_of(e);
    if (e.name != kUnnamed) {
      const std::size_t needed = e.older ? 2 : 1;
      assert(stack.size() >= needed && "freed before it was allocated");
      if (stack.size() < needed) return;
      const auto at = stack.end() - (e.older ? 2 : 1);
      give_back(*at);
      stack.erase(at);
      return;
    }
    for (std::size_t i = stack.size(); i-- > 0;) {
      if (stack[i].bytes != e.bytes || stack[i].pool != e.stream) continue;
      give_back(stack[i]);
      stack.erase(stack.begin() + static_cast<std::ptrdiff_t>(i));
      return;
    }
    free_total(stack, e.bytes);
  }

  void give_back(const Live& live) {
    allocator_.free(live.block);
    requested_ -= live.bytes;
  }

  /// A total of several blocks: the newest ones. What is less than a block shortens it only in the
  /// program's account: the allocator cannot give back a part.
  void free_total(std::vector<Live>& stack, std::int64_t bytes) {
    while (bytes > 0 && !stack.empty()) {
      Live& newest = stack.back();
      if (newest.bytes > bytes) {
        newest.bytes -= bytes;
        requested_ -= bytes;
        return;
      }
      bytes -= newest.bytes;
      give_back(newest);
      stack.pop_back();
    }
    assert(bytes == 0 && "more is freed than was allocated");
  }

  void run_range(std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end && !failed_; ++i) {
      const Event& e = events_[i];
      switch (e.kind) {
        case Event::Kind::alloc:
          allocate(e);
          break;
        case Event::Kind::free:
          free(e);
          break;
        case Event::Kind::blocks:
          for_each_block(program_, e, [&](const Event& block) {
            block.kind == Event::Kind::alloc ? allocate(block) : free(block);
          });
          break;
        case Event::Kind::begin_phase:
          phase_ = static_cast<std::size_t>(e.phase);
          note_peak();
          break;
        case Event::Kind::end_phase:
          phases_[phase_].end = allocator_.allocated();
          break;
        case Event::Kind::once: {
          const Once& once = program_.once[static_cast<std::size_t>(e.count)];
          if (once.step == step_) play(once.events);
          break;
        }
        case Event::Kind::begin_repeat:
          run_repeat(i);
          i = ends_[i];
          break;
        default:
          break;
      }
    }
  }

  void run_repeat(std::size_t begin) {
    const std::size_t end = ends_[begin];
    std::int64_t count = events_[begin].count;
    for (std::size_t i = begin; i < end; ++i)
      if (events_[i].kind == Event::Kind::begin_phase) count = std::min(count, kMostMicroBatches);
    for (std::int64_t k = 0; k < count && !failed_; ++k) run_range(begin + 1, end);
  }

  const Program& program_;
  const std::vector<Event>& events_;
  CachingAllocator allocator_;
  std::vector<std::size_t> ends_;  ///< of the repetition that begins at this event
  std::vector<std::vector<Live>> named_;
  std::array<std::vector<Live>, kCategoryCount> unnamed_;
  std::array<PhaseBytes, kPhaseCount> phases_;
  std::size_t phase_ = 0;
  std::int64_t step_ = 0;  ///< counted from 1
  std::int64_t requested_ = 0, peak_requested_ = 0;
  bool failed_ = false;
};

}  // namespace

ReservedProfile simulate_reserved(const Program& program, const AllocatorOptions& options) {
  return Runner(program, options).run();
}

}  // namespace shardplan
