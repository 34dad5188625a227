#include "load/ds_config/batch_triangle.h"

#include <fmt/format.h>

#include <string>

#include "base/checked.h"

namespace shardplan {
namespace {

constexpr const char* kTrain = "train_batch_size";
constexpr const char* kMicro = "train_micro_batch_size_per_gpu";
constexpr const char* kSteps = "gradient_accumulation_steps";

bool any_batch_key(const DsValues& values) {
  return values.given(kTrain) != nullptr || values.given(kMicro) != nullptr ||
         values.given(kSteps) != nullptr;
}

/// Elasticity picks the batch at start-up and refuses to be told one.
void check_elasticity(const DsValues& values, const DsConfigContext& context,
                      DsFindings& findings) {
  if (context.pipeline_parallel > 1)
    findings.error("ds.elastic-pipeline"_rule, "elasticity.enabled",
                   "elasticity does not work with pipeline parallelism");
  if (!any_batch_key(values)) return;
  if (values.flag("elasticity.ignore_non_elastic_batch_info"))
    findings.warning("ds.elastic-batch-ignored"_rule, "elasticity.enabled",
                     "the batch sizes of the file are ignored, because elasticity chooses them");
  else
    findings.error("ds.elastic-batch"_rule, "elasticity.enabled",
                   "elasticity refuses explicit batch sizes",
                   "no batch keys, or elasticity.ignore_non_elastic_batch_info");
}

/// The ranks of the triangle; nullopt, and reported, when sequence parallelism does not divide
/// them.
std::optional<std::int64_t> ranks_of(const DsValues& values, const DsConfigContext& context,
                                     DsFindings& findings) {
  if (!context.world_size) return std::nullopt;
  const auto sequence = values.maybe_integer("sequence_parallel_size").value_or(1);
  if (*context.world_size % sequence == 0) return *context.world_size / sequence;
  findings.error("ds.sequence-parallel-ranks"_rule, "sequence_parallel_size",
                 say("{} does not divide the {} ranks", sequence, *context.world_size),
                 say("a divisor of {}", *context.world_size));
  return std::nullopt;
}

void check_product(const BatchTriangle& t, std::int64_t ranks, std::int64_t sequence,
                   DsFindings& findings) {
  const std::int64_t product = checked_mul(checked_mul(*t.micro_batch, *t.accumulation), ranks);
  if (*t.micro_batch > 0 && *t.accumulation > 0 && product == *t.train_batch) return;
  const Said shown = sequence == 1 ? say("{} ranks", ranks)
                                   : say("{} ranks ({} / {} sequence-parallel)", ranks,
                                         checked_mul(ranks, sequence), sequence);
  findings.error("ds.batch-triangle"_rule, kTrain,
                 say("{} is not {} micro-batch x {} accumulation x {} = {}", *t.train_batch,
                     *t.micro_batch, *t.accumulation, shown, product),
                 "a product that closes");
}

}  // namespace

BatchTriangle close_batch_triangle(const DsValues& values, const DsConfigContext& context,
                                   DsFindings& findings) {
  if (values.flag("elasticity.enabled")) {
    check_elasticity(values, context, findings);
    return {};
  }
  BatchTriangle t{values.maybe_integer(kTrain), values.maybe_integer(kMicro),
                  values.maybe_integer(kSteps)};
  if (!any_batch_key(values) && context.micro_batch) {
    t.micro_batch = context.micro_batch;
    t.accumulation = context.gradient_accumulation;
    findings.note(
        "ds.batch-from-job"_rule, kMicro,
        say("not in the file: the job's micro-batch of {} is taken", *context.micro_batch));
  } else if (!t.accumulation && context.auto_resolver == AutoResolver::accelerate) {
    t.accumulation = 1;  // accelerate writes it into a file that has none
  }
  if (!t.train_batch && !t.micro_batch) {
    findings.error("ds.batch-missing"_rule, kMicro,
                   "neither the batch size nor the micro-batch size is given",
                   say("'{}' or '{}'", kTrain, kMicro));
    return t;
  }
  const auto ranks = ranks_of(values, context, findings);
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
  check_product(t, *ranks, values.maybe_integer("sequence_parallel_size").value_or(1), findings);
  return t;
}

}  // namespace shardplan
