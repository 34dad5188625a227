#include "comm/threads.h"

#include <algorithm>
#include <cassert>
#include <utility>
#include <vector>

namespace shardplan::validator {
namespace {

/// Elements [first, first + count) that rank `rank` of `ranks` reduces.
struct Part {
  std::int64_t first = 0, count = 0;
};
Part part_of(std::int64_t elements, int rank, int ranks) {
  const std::int64_t each = round_up(ceil_div(elements, ranks), 64);
  const std::int64_t first = std::min(elements, each * rank);
  return {first, std::min(each, elements - first)};
}

class ThreadCommunicator final : public Communicator {
 public:
  ThreadCommunicator(std::shared_ptr<Meeting> meeting, int rank,
                     std::unique_ptr<CommonMemory> memory)
      : meeting_(std::move(meeting)), memory_(std::move(memory)), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return meeting_->ranks(); }

  void all_reduce(const Tensor& x) override {
    open(x);
    const Part mine = part_of(x.numel(), rank_, size());
    if (mine.count > 0) sum(x.slice(mine.first, mine.count), mine.first);
    meet(Point::summed);
    for (int r = 0; r < size(); ++r) {
      const Part part = part_of(x.numel(), r, size());
      if (r == rank_ || part.count == 0) continue;
      memory_->copy(x.slice(part.first, part.count), theirs(r).slice(part.first, part.count));
    }
    meet(Point::done);
  }

  void reduce_scatter(const Tensor& shard, const Tensor& full) override {
    assert(shard.numel() * size() == full.numel());
    open(full);
    sum(shard, shard.numel() * rank_);
    meet(Point::done);
  }

  void all_gather(const Tensor& full, const Tensor& shard) override {
    assert(shard.numel() * size() == full.numel());
    open(shard);
    for (int r = 0; r < size(); ++r) {
      const Tensor place = full.slice(shard.numel() * r, shard.numel());
      if (place.address != theirs(r).address) memory_->copy(place, theirs(r));
    }
    meet(Point::done);
  }

  void broadcast(const Tensor& x, int root) override {
    open(x);
    if (rank_ != root) memory_->copy(x, theirs(root));
    meet(Point::done);
  }

  void connect_all() override {}

  void all_to_all(const Tensor& to, const Tensor& from, std::int64_t blocks) override {
    assert(to.numel() == from.numel() && from.numel() % (blocks * size()) == 0);
    open(from);
    const std::int64_t part = from.numel() / (blocks * size());
    for (std::int64_t b = 0; b < blocks; ++b)
      for (int r = 0; r < size(); ++r)
        memory_->copy(to.slice((b * size() + r) * part, part),
                      theirs(r).slice((b * size() + rank_) * part, part));
    meet(Point::done);
  }

  void connect_neighbours() override {}

  void exchange(std::span<const Parcel> out, std::span<const Parcel> in) override {
    const Mark sent = memory_->mark(Point::sent);
    for (const Parcel& p : out) meeting_->post(rank_, p.peer, p.tensor, sent);
    for (const Parcel& p : in) {
      const Meeting::Letter letter = meeting_->await_letter(p.peer, rank_);
      memory_->wait(letter.mark);
      memory_->copy(p.tensor, letter.tensor);
      meeting_->take(p.peer, rank_, memory_->mark(Point::taken));
    }
    for (const Parcel& p : out) memory_->wait(meeting_->await_taken(rank_, p.peer));
  }

  void barrier() override {
    memory_->finish();
    meeting_->wait(rank_);
  }

  std::unique_ptr<Communicator> group(std::span<const int> members) override {
    const auto me = std::find(members.begin(), members.end(), rank_);
    return make_thread_communicator(meeting_->of(members), static_cast<int>(me - members.begin()),
                                    memory_->again());
  }

  void abort() noexcept override { meeting_->break_up(); }
  std::int64_t overhead_bytes() const override { return 0; }

 private:
  const Tensor& theirs(int rank) const { return meeting_->place(rank).tensor; }

  void open(const Tensor& x) {
    meeting_->place(rank_).tensor = x;
    meet(Point::ready);
  }

  /// What is enqueued from now on comes after all that any rank had enqueued here.
  void meet(Point point) {
    const auto at = static_cast<std::size_t>(point);
    meeting_->place(rank_).marks[at] = memory_->mark(point);
    meeting_->wait(rank_);
    for (int r = 0; r < size(); ++r)
      if (r != rank_) memory_->wait(meeting_->place(r).marks[at]);
  }

  /// Sums what every rank has from element `first` on, in rank order.
  void sum(const Tensor& to, std::int64_t first) {
    std::vector<Tensor> parts;
    for (int r = 0; r < size(); ++r) parts.push_back(theirs(r).slice(first, to.numel()));
    memory_->sum(to, parts);
  }

  std::shared_ptr<Meeting> meeting_;
  std::unique_ptr<CommonMemory> memory_;
  int rank_;
};

}  // namespace

std::shared_ptr<Meeting> make_meeting(int ranks, std::chrono::milliseconds patience) {
  return std::make_shared<Meeting>(ranks, patience);
}

std::unique_ptr<Communicator> make_thread_communicator(std::shared_ptr<Meeting> meeting, int rank,
                                                       std::unique_ptr<CommonMemory> memory) {
  return std::make_unique<ThreadCommunicator>(std::move(meeting), rank, std::move(memory));
}

}  // namespace shardplan::validator
