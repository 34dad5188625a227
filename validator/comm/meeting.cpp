#include "comm/meeting.h"

#include "device/errors.h"

namespace shardplan::validator {
namespace {

[[noreturn]] void fail() {
  throw PeerFailure("another rank failed or stopped answering in a collective");
}

}  // namespace

template <typename Condition>
void Meeting::wait_until(std::unique_lock<std::mutex>& lock, Condition&& is_so) {
  if (!changed_.wait_for(lock, patience_, [&] { return is_so() || broken_; })) broken_ = true;
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
  wait_until(lock, [&] { return !w.posted.empty(); });
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
  wait_until(lock, [&] { return !w.taken.empty(); });
  const Mark taken = w.taken.front();
  w.taken.pop_front();
  return taken;
}

void Meeting::wait() {
  std::unique_lock lock(mutex_);
  if (broken_) fail();
  const std::int64_t round = round_;
  if (++arrived_ == ranks()) {
    arrived_ = 0;
    ++round_;
    changed_.notify_all();
  }
  wait_until(lock, [&] { return round_ != round; });
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
  if (!group) group = std::make_shared<Meeting>(static_cast<int>(members.size()), patience_);
  return group;
}

}  // namespace shardplan::validator
