#include "load/ds_config/batch_triangle.h"

#include "base/checked.h"

namespace shardplan {

bool has_batch_key(const DsValues& values) {
  return values.given(batch_key::kTrain) != nullptr || values.given(batch_key::kMicro) != nullptr ||
         values.given(batch_key::kSteps) != nullptr;
}

BatchTriangle given_batch(const DsValues& values, const DsConfigContext& context) {
  BatchTriangle t{values.maybe_integer(batch_key::kTrain), values.maybe_integer(batch_key::kMicro),
                  values.maybe_integer(batch_key::kSteps)};
  if (!has_batch_key(values) && context.micro_batch) {
    t.micro_batch = context.micro_batch;
    t.accumulation = context.gradient_accumulation;
  } else if (!t.accumulation && context.auto_resolver == AutoResolver::accelerate) {
    t.accumulation = 1;  // accelerate writes it into a file that has none
  }
  return t;
}

std::optional<std::int64_t> batch_ranks(const DsValues& values, const DsConfigContext& context) {
  if (!context.world_size) return std::nullopt;
  const auto sequence = values.maybe_integer("sequence_parallel_size").value_or(1);
  if (*context.world_size % sequence != 0) return std::nullopt;
  return *context.world_size / sequence;
}

BatchTriangle close_batch_triangle(const DsValues& values, const DsConfigContext& context) {
  if (values.flag("elasticity.enabled")) return {};
  BatchTriangle t = given_batch(values, context);
  if (!t.train_batch && !t.micro_batch) return t;
  const auto ranks = batch_ranks(values, context);
  if (!ranks) {
    if (!t.accumulation && !t.train_batch) t.accumulation = 1;
    return t;
  }
  if (t.train_batch && t.micro_batch && !t.accumulation) {
    t.accumulation = *t.train_batch / *t.micro_batch / *ranks;
  } else if (t.train_batch && !t.micro_batch) {
    t.accumulation = t.accumulation.value_or(1);
    t.micro_batch = *t.train_batch / *ranks / *t.accumulation;
  } else if (!t.train_batch) {
    t.accumulation = t.accumulation.value_or(1);
    t.train_batch = checked_mul(checked_mul(*t.micro_batch, *t.accumulation), *ranks);
  }
  return t;
}

}  // namespace shardplan
