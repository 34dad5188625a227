#include "comm/meeting.h"

#include "device/errors.h"

namespace shardplan::validator {
namespace {

[[noreturn]] void fail() {
  throw PeerFailure("another rank failed or stopped answering in a collective");
}

}  // namespace

void Meeting::wait() {
  std::unique_lock lock(mutex_);
  if (broken_) fail();
  const std::int64_t round = round_;
  if (++arrived_ == ranks()) {
    arrived_ = 0;
    ++round_;
    changed_.notify_all();
  }
  const auto over = [&] { return round_ != round || broken_; };
  if (!changed_.wait_for(lock, patience_, over)) broken_ = true;
  changed_.notify_all();
  if (round_ == round) fail();
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
