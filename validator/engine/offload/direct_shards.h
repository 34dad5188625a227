// Shards between a file and the device, past the host's memory: those that are computed with are
// read so. What the host updates is written from its own memory.
#pragma once

#include <vector>

#include "device/backend.h"
#include "storage/swap.h"

namespace shardplan::validator {

class DirectShards {
 public:
  /// `swap`: null in a dry run.
  DirectShards(Backend& device, Swap* swap, std::size_t slots)
      : device_(device), swap_(swap), landing_(slots) {}

  void use(const Tensor& slot);
  /// Begins to read to `to`, once `vacant` has been. Nothing is landing in the slot.
  void read(int slot, std::int64_t offset, const Tensor& to, Event vacant);
  /// Waits for what is landing in a slot.
  void land(int slot);
  /// Writes what is there after `written`, and waits.
  void write(std::int64_t offset, const Tensor& from, Event written);

 private:
  Backend& device_;
  Swap* swap_;
  std::vector<Transfer> landing_;  ///< by slot
};

}  // namespace shardplan::validator
