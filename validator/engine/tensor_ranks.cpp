#include "engine/tensor_ranks.h"

namespace shardplan::validator {

Tensor TensorRanks::gather(const Tensor& part, const Tensor& room) const {
  if (!divided()) return part;
  in_line(device_, event_, [&] { ranks_.all_gather(room, part); });
  return room;
}

void TensorRanks::sum(const Tensor& part, const Tensor& addend) const {
  if (!divided()) return;
  in_line(device_, event_, [&] { ranks_.reduce_scatter(part, addend); });
}

void TensorRanks::gather_in_place(const Tensor& all) const {
  const std::int64_t each = all.numel() / ranks_.size();
  in_line(device_, event_, [&] { ranks_.all_gather(all, all.slice(each * ranks_.rank(), each)); });
}

}  // namespace shardplan::validator
