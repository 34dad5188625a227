// Where the ranks of one process meet: a barrier that can be broken, and what each brings to it.
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "memory/tensor.h"

namespace shardplan::validator {

/// Where the ranks meet in a collective. Each point has marks of its own, so that a rank may reach
/// the next while another still looks at those of the last.
enum class Point : std::uint8_t {
  ready,   ///< others may read a rank's tensor
  summed,  ///< a rank's part of a sum is there
  done,    ///< a rank has read what it needs of the others' tensors
  sent,    ///< what a rank sends is there
  taken,   ///< a rank has read what it was sent
};
inline constexpr std::size_t kPoints = 5;

/// What a rank has given its device to do when it comes to a point (CommonMemory::mark).
using Mark = std::uintptr_t;

class Meeting {
 public:
  /// A rank that waits for the others longer than `patience` throws PeerFailure.
  Meeting(int ranks, std::chrono::milliseconds patience);

  /// What a rank brings.
  struct Place {
    Tensor tensor;
    std::array<Mark, kPoints> marks{};
  };

  int ranks() const { return static_cast<int>(places_.size()); }
  Place& place(int rank) { return places_[static_cast<std::size_t>(rank)]; }
  /// Returns when all ranks have called it, each with its own number.
  void wait(int rank);
  /// One rank sends another a tensor that is there at `sent`; they are taken in that order.
  void post(int from, int to, const Tensor& tensor, Mark sent);
  /// Waits for it. The tensor stays the sender's, who waits until it is taken.
  struct Letter {
    Tensor tensor;
    Mark mark = 0;
  };
  Letter await_letter(int from, int to);
  /// The receiver has read it at `taken`.
  void take(int from, int to, Mark taken);
  /// Waits until the receiver has said so of the oldest letter; returns its mark.
  Mark await_taken(int from, int to);
  /// Makes every wait here, and in the meetings of groups, throw from now on.
  void break_up() noexcept;
  /// The meeting of these ranks alone, the same for all who ask.
  std::shared_ptr<Meeting> of(std::span<const int> members);

 private:
  /// What is on its way from one rank to another.
  struct Way {
    std::deque<Letter> posted;
    std::deque<Mark> taken;
  };
  Way& way(int from, int to) { return ways_[{from, to}]; }
  /// Throws PeerFailure when `is_so` does not come true in time; it names the rank `missing`.
  template <typename Condition, typename Missing>
  void wait_until(std::unique_lock<std::mutex>& lock, Condition&& is_so, Missing&& missing);
  [[noreturn]] void fail() const;

  std::chrono::milliseconds patience_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int> names_;  ///< of its ranks in the run
  std::vector<bool> here_;  ///< has come to this round
  std::int64_t round_ = 0;
  bool broken_ = false;
  int missing_ = -1;  ///< in the run, that broke it
  std::vector<Place> places_;
  std::map<std::pair<int, int>, Way> ways_;
  std::map<std::vector<int>, std::shared_ptr<Meeting>> groups_;
};

}  // namespace shardplan::validator
