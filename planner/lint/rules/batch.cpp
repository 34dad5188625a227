// train_batch_size = micro-batch x accumulation x ranks.
#include "lint/repairs.h"
#include "lint/rules/families.h"
#include "load/ds_config/values.h"

namespace shardplan {
namespace {

constexpr std::string_view kBatch =
    "deepspeed/runtime/config.py _set_batch_related_parameters, _batch_assertion";
constexpr std::string_view kElastic = "deepspeed/runtime/config.py, deepspeed/elasticity";

/// DeepSpeed multiplies the other two itself.
std::vector<Edit> drop_product(const Diagnostic&, const Json& document) {
  if (value_at(document, "train_micro_batch_size_per_gpu") == nullptr ||
      value_at(document, "gradient_accumulation_steps") == nullptr)
    return {};
  return {remove_key("train_batch_size")};
}

constexpr Rule kRules[] = {
    {"ds.batch-triangle"_rule, Severity::error, "The batch does not close",
     "train_batch_size must be micro-batch x accumulation x ranks; two of the three give the third "
     "by integer division, and DeepSpeed asserts the product.",
     kBatch, "Give two of the three, or values whose product closes on this number of ranks.",
     drop_product},
    {"ds.batch-missing"_rule, Severity::error, "No batch size",
     "Either train_batch_size or train_micro_batch_size_per_gpu must be there.", kBatch,
     "Set train_micro_batch_size_per_gpu."},
    {"ds.batch-from-job"_rule, Severity::note, "The batch comes from the command line",
     "The file has no batch key; DeepSpeed itself would refuse it as it is.", kBatch,
     "Write train_micro_batch_size_per_gpu into the file."},
    {"ds.sequence-parallel-ranks"_rule, Severity::error,
     "sequence_parallel_size does not divide the ranks",
     "The ranks of the batch are world / sequence_parallel_size.",
     "deepspeed/runtime/config.py DeepSpeedConfig.__init__", "Choose a divisor of the ranks."},
    {"ds.elastic-batch"_rule, Severity::error, "Elasticity with explicit batch sizes",
     "Elastic training chooses the batch and refuses to be told one.", kElastic,
     "Remove the batch keys, or set elasticity.ignore_non_elastic_batch_info."},
    {"ds.elastic-batch-ignored"_rule, Severity::warning,
     "Elasticity ignores the file's batch sizes",
     "With ignore_non_elastic_batch_info the batch keys are overwritten at start-up.", kElastic,
     "Remove the batch keys."},
    {"ds.elastic-pipeline"_rule, Severity::error, "Elasticity with pipeline parallelism",
     "The pipeline engine asserts that elasticity is off.", "deepspeed/runtime/pipe/engine.py",
     "Switch one of the two off."},
};

}  // namespace

std::span<const Rule> batch_rules() {
  return kRules;
}

}  // namespace shardplan
