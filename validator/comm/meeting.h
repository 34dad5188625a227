// Where the ranks of one process meet: a barrier that can be broken, and what each brings to it.
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "memory/tensor.h"

namespace shardplan::validator {

/// Where the ranks meet in a collective. Each point has marks of its own, so that a rank may reach
/// the next while another still looks at those of the last.
enum class Point : std::uint8_t {
  ready,   ///< others may read a rank's tensor
  summed,  ///< a rank's part of a sum is there
  done,    ///< a rank has read what it needs of the others' tensors
};
inline constexpr std::size_t kPoints = 3;

/// What a rank has given its device to do when it comes to a point (CommonMemory::mark).
using Mark = std::uintptr_t;

class Meeting {
 public:
  /// A rank that waits for the others longer than `patience` throws PeerFailure.
  Meeting(int ranks, std::chrono::milliseconds patience)
      : patience_(patience), places_(static_cast<std::size_t>(ranks)) {}

  /// What a rank brings.
  struct Place {
    Tensor tensor;
    std::array<Mark, kPoints> marks{};
  };

  int ranks() const { return static_cast<int>(places_.size()); }
  Place& place(int rank) { return places_[static_cast<std::size_t>(rank)]; }
  /// Returns when all ranks have called it.
  void wait();
  /// Makes every wait here, and in the meetings of groups, throw from now on.
  void break_up() noexcept;
  /// The meeting of these ranks alone, the same for all who ask.
  std::shared_ptr<Meeting> of(std::span<const int> members);

 private:
  std::chrono::milliseconds patience_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int arrived_ = 0;
  std::int64_t round_ = 0;
  bool broken_ = false;
  std::vector<Place> places_;
  std::map<std::vector<int>, std::shared_ptr<Meeting>> groups_;
};

}  // namespace shardplan::validator
