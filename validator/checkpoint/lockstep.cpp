#include "checkpoint/lockstep.h"

#include <algorithm>
#include <array>

#include "engine/runtime.h"

namespace shardplan::validator {

bool Lockstep::any_busy(bool busy) {
  if (world_.size() == 1) return busy;
  device_.fill(word_, busy ? 1 : 0);
  in_line(device_, done_, [&] { world_.all_reduce(word_); });
  // The sum is a small whole number in fp32 and in fp64: zero in both has no bits.
  std::array<std::byte, sizeof(double)> bytes{};
  device_.download(std::span(bytes).first(static_cast<std::size_t>(word_.bytes())), word_);
  return std::any_of(bytes.begin(), bytes.end(), [](std::byte b) { return b != std::byte{0}; });
}

}  // namespace shardplan::validator
