// The ranks that divide the experts of each layer (GShard, arXiv 2006.16668): rows go to the rank
// that has their expert, and what it made of them comes back. One rank has all experts and nothing
// to exchange.
#pragma once

#include "engine/runtime.h"

namespace shardplan::validator {

class ExpertRanks {
 public:
  explicit ExpertRanks(const Runtime& runtime)
      : device_(runtime.device), ranks_(runtime.experts), event_(runtime.device.new_event()) {}

  bool divided() const { return ranks_.size() > 1; }

  /// Room for rows on their way, until the end of the step.
  void lend(const Tensor& room) { room_ = room; }
  /// What is on the other side of an exchange from `here`: the room, or `here` itself where nothing
  /// is exchanged.
  const Tensor& beyond(const Tensor& here) const { return divided() ? room_ : here; }
  /// `here` becomes what the ranks have in their rooms for this one; experts: of this rank. On one
  /// side slots are in the order of their senders' experts (PlaceRows), on the other each expert's
  /// slots are together, sender by sender.
  void receive(const Tensor& here, std::int64_t experts) const { exchange(here, room_, experts); }
  /// The room becomes what the ranks have for this one in their `here`.
  void send(const Tensor& here, std::int64_t experts) const { exchange(room_, here, experts); }

 private:
  void exchange(const Tensor& to, const Tensor& from, std::int64_t blocks) const {
    if (!divided()) return;
    in_line(device_, event_, [&] { ranks_.all_to_all(to, from, blocks); });
  }

  Backend& device_;
  Communicator& ranks_;
  Event event_;
  Tensor room_;
};

}  // namespace shardplan::validator
