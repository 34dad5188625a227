// The ranks that divide the experts of each layer (GShard, arXiv 2006.16668): rows go to the rank
// that has their expert, and what it made of them comes back. One rank has all experts and nothing
// to exchange.
//
// A rank's slots are in the order of all experts, so that those for another rank's experts lie
// together and go as one message. They arrive sender by sender, and are put in the order of experts
// before these compute. Many small messages instead, one for each expert, take a GPU longer to send
// than the copies take.
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
  /// Rows in this rank's slots become the rows of its experts, `experts` of them: each expert's
  /// together, sender by sender.
  void to_experts(const Tensor& rows, std::int64_t experts) const {
    if (!divided()) return;
    in_line(device_, event_, [&] { ranks_.all_to_all(room_, rows); });
    device_.regroup(rows, room_, ranks_.size(), experts);
  }
  /// And back.
  void from_experts(const Tensor& rows, std::int64_t experts) const {
    if (!divided()) return;
    device_.regroup(room_, rows, experts, ranks_.size());
    in_line(device_, event_, [&] { ranks_.all_to_all(rows, room_); });
  }

 private:
  Backend& device_;
  Communicator& ranks_;
  Event event_;
  Tensor room_;
};

}  // namespace shardplan::validator
