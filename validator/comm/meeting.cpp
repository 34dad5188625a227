#include "comm/meeting.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "comm/patience.h"
#include "device/errors.h"

namespace shardplan::validator {

Meeting::Meeting(int ranks, std::chrono::milliseconds patience)
    : patience_(patience),
      names_(static_cast<std::size_t>(ranks)),
      here_(static_cast<std::size_t>(ranks)),
      places_(static_cast<std::size_t>(ranks)) {
  std::iota(names_.begin(), names_.end(), 0);
}

void Meeting::fail() const {
  if (missing_ < 0) throw PeerFailure("another rank failed");
  throw PeerFailure(fmt::format("rank {} did not come within {:.3g} s", missing_,
                                std::chrono::duration<double>(patience_).count()),
                    missing_);
}

template <typename Condition, typename Missing>
void Meeting::wait_until(std::unique_lock<std::mutex>& lock, Condition&& is_so, Missing&& missing) {
  const Waiting waiting;
  if (!changed_.wait_for(lock, patience_, [&] { return is_so() || broken_; })) {
    broken_ = true;
    missing_ = names_[static_cast<std::size_t>(missing())];
  }
  if (!broken_ || is_so()) return;
  changed_.notify_all();
  fail();
}

void Meeting::post(int from, int to, const Tensor& tensor, Mark sent) {
  const std::lock_guard lock(mutex_);
  if (broken_) fail();
  way(from, to).posted.push_back({tensor, sent});
  changed_.notify_all();
}

Meeting::Letter Meeting::await_letter(int from, int to) {
  std::unique_lock lock(mutex_);
  Way& w = way(from, to);
  wait_until(
      lock, [&] { return !w.posted.empty(); }, [&] { return from; });
  const Letter letter = w.posted.front();
  w.posted.pop_front();
  return letter;
}

void Meeting::take(int from, int to, Mark taken) {
  const std::lock_guard lock(mutex_);
  way(from, to).taken.push_back(taken);
  changed_.notify_all();
}

Mark Meeting::await_taken(int from, int to) {
  std::unique_lock lock(mutex_);
  Way& w = way(from, to);
  wait_until(
      lock, [&] { return !w.taken.empty(); }, [&] { return to; });
  const Mark taken = w.taken.front();
  w.taken.pop_front();
  return taken;
}

void Meeting::wait(int rank) {
  std::unique_lock lock(mutex_);
  if (broken_) fail();
  const std::int64_t round = round_;
  here_[static_cast<std::size_t>(rank)] = true;
  const auto absent = [&] { return std::find(here_.begin(), here_.end(), false) - here_.begin(); };
  if (absent() == ranks()) {
    here_.assign(here_.size(), false);
    ++round_;
    changed_.notify_all();
  }
  wait_until(
      lock, [&] { return round_ != round; }, absent);
}

void Meeting::break_up() noexcept {
  const std::lock_guard lock(mutex_);
  broken_ = true;
  changed_.notify_all();
  for (const auto& [members, group] : groups_) group->break_up();
}

std::shared_ptr<Meeting> Meeting::of(std::span<const int> members) {
  const std::lock_guard lock(mutex_);
  if (broken_) fail();
  auto& group = groups_[{members.begin(), members.end()}];
  if (!group) {
    group = std::make_shared<Meeting>(static_cast<int>(members.size()), patience_);
    for (std::size_t i = 0; i < members.size(); ++i)
      group->names_[i] = names_[static_cast<std::size_t>(members[i])];
  }
  return group;
}

}  // namespace shardplan::validator
