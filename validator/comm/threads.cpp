#include "comm/threads.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "device/errors.h"
#include "memory/elements.h"

namespace shardplan::validator {

/// A barrier that can be broken, and what each rank brings to it.
class Meeting {
 public:
  Meeting(int ranks, std::chrono::milliseconds patience)
      : patience_(patience), tensors_(static_cast<std::size_t>(ranks)) {}

  int ranks() const { return static_cast<int>(tensors_.size()); }
  Tensor& tensor_of(int rank) { return tensors_[static_cast<std::size_t>(rank)]; }

  void wait() {
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
  void break_up() noexcept {
    const std::lock_guard lock(mutex_);
    broken_ = true;
    changed_.notify_all();
  }

 private:
  [[noreturn]] static void fail() {
    throw PeerFailure("another rank failed or stopped answering in a collective");
  }

  std::chrono::milliseconds patience_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int arrived_ = 0;
  std::int64_t round_ = 0;
  bool broken_ = false;
  std::vector<Tensor> tensors_;
};

namespace {

/// Elements [first, first + count) that rank `rank` of `ranks` reduces.
struct Part {
  std::int64_t first = 0, count = 0;
};
Part part_of(std::int64_t elements, int rank, int ranks) {
  const std::int64_t each = ceil_div(elements, ranks);
  const std::int64_t first = std::min(elements, each * rank);
  return {first, std::min(each, elements - first)};
}

class ThreadCommunicator final : public Communicator {
 public:
  ThreadCommunicator(std::shared_ptr<Meeting> meeting, int rank)
      : meeting_(std::move(meeting)), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return meeting_->ranks(); }

  void all_reduce(const Tensor& x) override {
    meeting_->tensor_of(rank_) = x;
    meeting_->wait();
    const Part mine = part_of(x.numel(), rank_, size());
    reduce(x.slice(mine.first, mine.count), mine);
    meeting_->wait();
    for (int r = 0; r < size(); ++r) {
      const Part part = part_of(x.numel(), r, size());
      if (r == rank_ || part.count == 0) continue;
      copy(x.slice(part.first, part.count), meeting_->tensor_of(r).slice(part.first, part.count));
    }
    meeting_->wait();
  }

  void reduce_scatter(const Tensor& shard, const Tensor& full) override {
    assert(shard.numel() * size() == full.numel());
    meeting_->tensor_of(rank_) = full;
    meeting_->wait();
    reduce(shard, {shard.numel() * rank_, shard.numel()});
    meeting_->wait();
  }

  void all_gather(const Tensor& full, const Tensor& shard) override {
    assert(shard.numel() * size() == full.numel());
    meeting_->tensor_of(rank_) = shard;
    meeting_->wait();
    for (int r = 0; r < size(); ++r)
      copy(full.slice(shard.numel() * r, shard.numel()), meeting_->tensor_of(r));
    meeting_->wait();
  }

  void broadcast(const Tensor& x, int root) override {
    meeting_->tensor_of(rank_) = x;
    meeting_->wait();
    if (rank_ != root) copy(x, meeting_->tensor_of(root));
    meeting_->wait();
  }

  void barrier() override { meeting_->wait(); }
  void abort() noexcept override { meeting_->break_up(); }
  std::int64_t overhead_bytes() const override { return 0; }

 private:
  static void copy(const Tensor& to, const Tensor& from) {
    if (to.address != from.address)
      std::memcpy(to.data(), from.data(), static_cast<std::size_t>(to.bytes()));
  }

  /// Sums that part of every rank's tensor, in rank order.
  void reduce(const Tensor& to, Part part) {
    host::dispatch(to.dtype, [&](auto zero) {
      using T = decltype(zero);
      for (std::int64_t i = 0; i < part.count; ++i) {
        host::Wide<T> total = 0;
        for (int r = 0; r < size(); ++r)
          total += host::widen(meeting_->tensor_of(r).as<T>()[part.first + i]);
        to.as<T>()[i] = static_cast<T>(total);
      }
    });
  }

  std::shared_ptr<Meeting> meeting_;
  int rank_;
};

}  // namespace

std::shared_ptr<Meeting> make_meeting(int ranks, std::chrono::milliseconds patience) {
  return std::make_shared<Meeting>(ranks, patience);
}

std::unique_ptr<Communicator> make_thread_communicator(std::shared_ptr<Meeting> meeting, int rank) {
  return std::make_unique<ThreadCommunicator>(std::move(meeting), rank);
}

}  // namespace shardplan::validator
