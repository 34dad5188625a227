#include "simulator/block_script.h"

#include <algorithm>
#include <array>
#include <utility>

namespace shardplan {
namespace {

/// Micro-batches between the first and the last that are run: they are alike.
constexpr std::int64_t kMostMicroBatches = 2;

bool is_state(Category category) {
  return category == Category::parameters || category == Category::gradients ||
         category == Category::master_parameters || category == Category::optimizer_states;
}

class ScriptWriter {
 public:
  ScriptWriter(const Program& program, const Pace& pace) : program_(program), pace_(pace) {
    script_.rules = pace.rules;
  }

  BlockScript write() {
    script_.keeps_build_cache = program_.keeps_build_cache;
    write_build();
    script_.step = add(Kind::begin_step, 0, 0);
    write_step();
    for (const EventsOfOneStep& once : program_.once)
      script_.last_own = std::max(script_.last_own, once.step);
    return std::move(script_);
  }

 private:
  using Kind = BlockRow::Kind;

  std::size_t add(Kind kind, std::size_t number, std::int64_t amount) {
    BlockRow& row = script_.rows.emplace_back();
    row.kind = kind;
    row.number = static_cast<std::int32_t>(number);
    row.amount = amount;
    return script_.rows.size() - 1;
  }

  /// Where a repetition or a part of one step ends: the next row to be written.
  void close(std::size_t row) {
    place_ = kNoPlace;
    script_.rows[row].number = static_cast<std::int32_t>(script_.rows.size());
  }

  /// Blocks without a name: a stack a category. Behind them the names.
  std::size_t stack_of(const Event& e) {
    const std::size_t stack = e.name == kUnnamed
                                  ? index_of(e.category)
                                  : kCategoryCount + static_cast<std::size_t>(e.name);
    script_.stacks = std::max(script_.stacks, stack + 1);
    return stack;
  }

  void add_block(const Event& e) {
    std::vector<std::size_t> others;
    for (std::int32_t step = 1; step < e.first_step; ++step)
      others.push_back(add(Kind::not_in_step, 0, step));
    add_row(e);
    for (const std::size_t other : others) close(other);
  }

  /// A gradient whose place has been held takes it over: nothing is freed between.
  bool takes_place(const Event& e) {
    if (std::exchange(place_, kNoPlace) + 1 != script_.rows.size()) return false;
    if (e.kind != Event::Kind::alloc || e.category != Category::gradients) return false;
    BlockRow& row = script_.rows.back();
    if (row.amount != e.bytes || row.stream != e.stream || row.used_on != e.stream) return false;
    row.kind = Kind::hand_over;
    row.to = static_cast<std::int32_t>(stack_of(e));
    return true;
  }

  void add_row(const Event& e) {
    if (takes_place(e)) return;
    const Kind kind = e.kind != Event::Kind::free ? Kind::alloc
                      : e.oldest                  ? Kind::free_oldest
                      : e.name == kUnnamed        ? Kind::free_size
                      : e.older                   ? Kind::free_older
                                                  : Kind::free_newest;
    BlockRow& row = script_.rows[add(kind, stack_of(e), e.bytes)];
    row.stream = e.stream;
    row.used_on = e.used_on;
    row.is_state = is_state(e.category);
    if (kind == Kind::free_newest && e.category == Category::gradients)
      place_ = script_.rows.size() - 1;
  }

  void add_move(std::size_t event) {
    if (pace_.moves.empty()) return;
    add(Kind::clock, script_.moves.size(), 0);
    script_.moves.push_back(pace_.moves[event]);
  }

  /// Categories whose residents the first step makes.
  std::array<bool, kCategoryCount> lazy_categories() const {
    std::array<bool, kCategoryCount> lazy{};
    for (const EventsOfOneStep& once : program_.once)
      if (once.step == 1 && once.makes_residents)
        for (const Event& e : once.events) lazy[index_of(e.category)] = true;
    return lazy;
  }

  static bool is_late(const Event& resident, std::int64_t workspace) {
    return resident.category == Category::workspace && resident.bytes == workspace &&
           resident.count > 1;
  }

  /// Of a library, which the first step makes; 0: none.
  std::int64_t late_workspace() const {
    for (const EventsOfOneStep& once : program_.once)
      for (const Event& e : program_.resident)
        if (is_late(e, once.workspace)) return e.bytes;
    return 0;
  }

  void write_build() {
    const bool says = !program_.build.empty();
    const std::array<bool, kCategoryCount> lazy = lazy_categories();
    std::vector<Event> built;
    late_ = late_workspace();
    std::int64_t late = late_;
    for (const Event& e : says ? program_.build : program_.resident) {
      if (!says && lazy[index_of(e.category)]) continue;
      built.push_back(e);
      if (is_late(e, late)) {
        --built.back().count;
        late = 0;
      }
    }
    write_list(built);
  }

  /// Neighbours of equal count are the tensors of layers: all of one layer, then the next one's.
  void write_list(const std::vector<Event>& list) {
    for (std::size_t i = 0; i < list.size();) {
      if (list[i].kind == Event::Kind::empty_cache) {
        add(Kind::empty_cache, 0, 0);
        ++i;
        continue;
      }
      std::size_t end = i + 1;
      while (end < list.size() && list[end].count == list[i].count && list[i].count > 1) ++end;
      const std::size_t repeat = add(Kind::repeat, 0, list[i].count);
      for (std::size_t j = i; j < end; ++j) add_block(list[j]);
      add(Kind::end_repeat, 0, 0);
      close(repeat);
      i = end;
    }
  }

  void write_step() {
    std::vector<std::size_t> open;
    for (std::size_t i = 0; i < program_.events.size(); ++i) {
      const Event& e = program_.events[i];
      switch (e.kind) {
        case Event::Kind::alloc:
        case Event::Kind::free:
          add_block(e);
          break;
        case Event::Kind::blocks:
          for_each_block(program_, e, [&](const Event& block) { add_block(block); });
          break;
        case Event::Kind::begin_phase:
          add(Kind::begin_phase, static_cast<std::size_t>(e.phase), 0);
          add_move(i);
          break;
        case Event::Kind::end_phase:
          add(Kind::end_phase, static_cast<std::size_t>(e.phase), 0);
          break;
        case Event::Kind::once: {
          const EventsOfOneStep& once = program_.once[static_cast<std::size_t>(e.count)];
          if (once.workspace > 0 && std::exchange(late_, 0) == 0) break;
          const bool chance = once.chance != Chance::none;
          const std::size_t there =
              chance ? add(Kind::by_chance, 0, static_cast<std::int64_t>(once.chance)) : 0;
          const std::size_t only =
              add(once.first_time ? Kind::first_time : Kind::only_in_step, 0, once.step);
          write_list(once.events);
          close(only);
          if (chance) close(there);
          script_.has_chances = script_.has_chances || chance;
          break;
        }
        case Event::Kind::begin_repeat:
          open.push_back(add(Kind::repeat, 0, times_run(i)));
          break;
        case Event::Kind::end_repeat:
          add(Kind::end_repeat, 0, 0);
          close(open.back());
          open.pop_back();
          break;
        case Event::Kind::empty_cache:
          add(Kind::empty_cache, 0, 0);
          break;
        case Event::Kind::gradients_whole:
          break;
        default:
          add_move(i);
          break;
      }
    }
  }

  /// Of the repetition that begins with event `begin`: all, but of micro-batches the first and one
  /// more.
  std::int64_t times_run(std::size_t begin) const {
    const std::size_t end = matching_end(program_.events, begin);
    for (std::size_t i = begin; i < end; ++i)
      if (program_.events[i].kind == Event::Kind::begin_phase)
        return std::min(program_.events[begin].count, kMostMicroBatches);
    return program_.events[begin].count;
  }

  const Program& program_;
  const Pace& pace_;
  BlockScript script_;
  std::int64_t late_ = 0;  ///< the workspace that is not made yet
  static constexpr std::size_t kNoPlace = static_cast<std::size_t>(-2);
  std::size_t place_ = kNoPlace;  ///< the row that freed a gradient's place last
};

}  // namespace

bool waits_for_streams(const Program& program) {
  const auto waits = [](const Event& e) {
    return e.kind == Event::Kind::free && e.used_on != e.stream;
  };
  return std::any_of(program.events.begin(), program.events.end(), waits) ||
         std::any_of(program.blocks.begin(), program.blocks.end(), waits);
}

BlockScript block_script(const Program& program, const Pace& pace) {
  return ScriptWriter(program, pace).write();
}

bool alike(const BlockScript& a, const BlockScript& b) {
  return a.keeps_build_cache == b.keeps_build_cache && a.rows == b.rows && a.moves == b.moves &&
         a.rules == b.rules;
}

std::size_t first_difference(const BlockScript& a, const BlockScript& b) {
  const auto same = [&](const BlockRow& x, const BlockRow& y) {
    if (x != y || x.kind != BlockRow::Kind::clock) return x == y;
    const auto move = static_cast<std::size_t>(x.number);
    return a.moves[move] == b.moves[move];
  };
  const auto [in_a, in_b] =
      std::mismatch(a.rows.begin(), a.rows.end(), b.rows.begin(), b.rows.end(), same);
  return static_cast<std::size_t>(in_a - a.rows.begin());
}

}  // namespace shardplan
