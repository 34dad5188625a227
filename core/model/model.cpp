#include "model/model.h"

namespace shardplan {

std::int64_t Model::parameter_count() const {
  std::int64_t sum = 0;
  for_each_distinct([&](const Parameter& p, std::int64_t repeat) {
    sum = checked_add(sum, checked_mul(p.numel, repeat));
  });
  return sum;
}

std::int64_t Model::trainable_count() const {
  std::int64_t sum = 0;
  for_each_distinct([&](const Parameter& p, std::int64_t repeat) {
    if (p.trainable) sum = checked_add(sum, checked_mul(p.numel, repeat));
  });
  return sum;
}

std::int64_t Model::tensor_count() const {
  std::int64_t sum = 0;
  for_each_distinct([&](const Parameter&, std::int64_t repeat) { sum = checked_add(sum, repeat); });
  return sum;
}

}  // namespace shardplan
