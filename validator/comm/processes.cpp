#include "comm/processes.h"

#include <cstring>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "comm/ring.h"
#include "memory/elements.h"

namespace shardplan::validator {
namespace {

/// What a rank waits for others in; another rank's thread may end it.
class Ways {
 public:
  explicit Ways(std::unique_ptr<Star> star) : star_(std::move(star)) {}

  const Star& star() const { return *star_; }
  const Ring& ring() const { return *ring_; }
  void open_ring() {
    auto ring = std::make_unique<Ring>(*star_);
    const std::lock_guard lock(mutex_);
    ring_ = std::move(ring);
    if (shut_) ring_->shut();
  }
  void shut() noexcept {
    const std::lock_guard lock(mutex_);
    shut_ = true;
    star_->shut();
    if (ring_) ring_->shut();
  }

 private:
  std::unique_ptr<Star> star_;
  std::mutex mutex_;
  std::unique_ptr<Ring> ring_;
  bool shut_ = false;
};

class ProcessCommunicator final : public Communicator {
 public:
  explicit ProcessCommunicator(std::unique_ptr<Star> star)
      : ways_(std::make_shared<Ways>(std::move(star))), star_(&ways_->star()) {}

  int rank() const override { return star_->rank(); }
  int size() const override { return star_->world(); }

  void all_reduce(const Tensor& x) override {
    if (rank() != 0) {
      hub().send(data(x));
      hub().receive(data(x));
      return;
    }
    collect_sum(x);
    for (int r = 1; r < size(); ++r) star_->to(r).send(data(x));
  }

  void reduce_scatter(const Tensor& shard, const Tensor& full) override {
    if (rank() != 0) {
      hub().send(data(full));
      hub().receive(data(shard));
      return;
    }
    collect_sum(full);
    for (int r = 1; r < size(); ++r)
      star_->to(r).send(data(full.slice(shard.numel() * r, shard.numel())));
    copy(shard, full.slice(0, shard.numel()));
  }

  void all_gather(const Tensor& full, const Tensor& shard) override {
    if (rank() != 0) {
      hub().send(data(shard));
      hub().receive(data(full));
      return;
    }
    copy(full.slice(0, shard.numel()), shard);
    for (int r = 1; r < size(); ++r)
      star_->to(r).receive(data(full.slice(shard.numel() * r, shard.numel())));
    for (int r = 1; r < size(); ++r) star_->to(r).send(data(full));
  }

  void broadcast(const Tensor& x, int root) override {
    if (rank() != 0) {
      rank() == root ? hub().send(data(x)) : hub().receive(data(x));
      return;
    }
    if (root != 0) star_->to(root).receive(data(x));
    for (int r = 1; r < size(); ++r)
      if (r != root) star_->to(r).send(data(x));
  }

  void connect_all() override {}

  void all_to_all(const Tensor& to, const Tensor& from, std::int64_t blocks) override {
    if (rank() != 0) {
      hub().send(data(from));
      hub().receive(data(to));
      return;
    }
    const std::size_t bytes = static_cast<std::size_t>(from.bytes());
    const std::size_t ranks = static_cast<std::size_t>(size());
    const std::size_t part = bytes / (static_cast<std::size_t>(blocks) * ranks);
    std::vector<std::byte> all(ranks * bytes), theirs(bytes);
    std::memcpy(all.data(), from.data(), bytes);
    for (std::size_t r = 1; r < ranks; ++r)
      star_->to(static_cast<int>(r)).receive(std::span(all).subspan(r * bytes, bytes));
    for (std::size_t r = 0; r < ranks; ++r) {
      // Part (b, r) of every rank s becomes part (b, s).
      for (std::size_t at = 0; at < bytes; at += ranks * part)
        for (std::size_t s = 0; s < ranks; ++s)
          std::memcpy(theirs.data() + at + s * part, all.data() + s * bytes + at + r * part, part);
      if (r == 0) {
        std::memcpy(to.data(), theirs.data(), bytes);
      } else {
        star_->to(static_cast<int>(r)).send(theirs);
      }
    }
  }

  void connect_neighbours() override { ways_->open_ring(); }

  void exchange(std::span<const Parcel> out, std::span<const Parcel> in) override {
    ways_->ring().exchange(out, in);
  }

  std::unique_ptr<Communicator> group(std::span<const int> members) override {
    auto group = std::make_unique<ProcessCommunicator>(star_->group(members));
    const std::lock_guard lock(mutex_);
    groups_.push_back(group->ways_);
    return group;
  }

  void barrier() override {
    std::byte token{};
    const std::span<std::byte> one(&token, 1);
    if (rank() != 0) {
      hub().send(one);
      hub().receive(one);
      return;
    }
    for (int r = 1; r < size(); ++r) star_->to(r).receive(one);
    for (int r = 1; r < size(); ++r) star_->to(r).send(one);
  }

  void abort() noexcept override {
    ways_->shut();
    const std::lock_guard lock(mutex_);
    for (const auto& group : groups_)
      if (const auto ways = group.lock()) ways->shut();
  }
  std::int64_t overhead_bytes() const override { return 0; }

 private:
  static std::span<std::byte> data(const Tensor& x) {
    return {static_cast<std::byte*>(x.data()), static_cast<std::size_t>(x.bytes())};
  }
  static void copy(const Tensor& to, const Tensor& from) {
    std::memmove(to.data(), from.data(), static_cast<std::size_t>(from.bytes()));
  }
  const Socket& hub() const { return star_->to(0); }

  /// x becomes the sum over ranks, in rank order. Rank 0 only.
  void collect_sum(const Tensor& x) {
    host::dispatch(x.dtype, [&](auto zero) {
      using T = decltype(zero);
      std::vector<T> theirs(static_cast<std::size_t>(x.numel()));
      std::vector<host::Wide<T>> total(theirs.size());
      for (std::size_t i = 0; i < total.size(); ++i) total[i] = host::widen(x.as<T>()[i]);
      for (int r = 1; r < size(); ++r) {
        star_->to(r).receive(std::as_writable_bytes(std::span(theirs)));
        for (std::size_t i = 0; i < total.size(); ++i) total[i] += host::widen(theirs[i]);
      }
      for (std::size_t i = 0; i < total.size(); ++i) x.as<T>()[i] = static_cast<T>(total[i]);
    });
  }

  std::shared_ptr<Ways> ways_;
  const Star* star_;
  std::mutex mutex_;  ///< of what another rank's thread looks at when it aborts this one
  std::vector<std::weak_ptr<Ways>> groups_;
};

}  // namespace

std::unique_ptr<Communicator> make_process_communicator(std::unique_ptr<Star> star) {
  return std::make_unique<ProcessCommunicator>(std::move(star));
}

}  // namespace shardplan::validator
