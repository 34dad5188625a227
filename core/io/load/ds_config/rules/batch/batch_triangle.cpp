#include "base/checked.h"
#include "load/ds_config/rules/batch/family.h"
#include "load/ds_config/values.h"

namespace shardplan::config_rules::batch {
namespace {

/// DeepSpeed multiplies the other two itself.
std::vector<Edit> drop_product(const Diagnostic&, const Json& document) {
  if (value_at(document, batch_key::kMicro) == nullptr ||
      value_at(document, batch_key::kSteps) == nullptr)
    return {};
  return {remove_key(batch_key::kTrain)};
}

}  // namespace

ConfigRule batch_triangle() {
  return {
      .rule =
          {
              .id = "ds.batch-triangle"_rule,
              .severity = Severity::error,
              .title = "The batch sizes do not match",
              .explanation =
                  "train_batch_size must be micro-batch x accumulation x ranks; two of the "
                  "three give the third by integer division, and DeepSpeed asserts the "
                  "product.",
              .source = kBatch,
              .advice =
                  "Give two of the three, or values whose product is right for this number of "
                  "ranks.",
              .repair = drop_product,
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            const BatchTriangle t = close_batch_triangle(s.values, s.context);
            const auto ranks = batch_ranks(s.values, s.context);
            if (!ranks || !t.train_batch || !t.micro_batch) return;
            const std::int64_t product =
                checked_mul(checked_mul(*t.micro_batch, *t.accumulation), *ranks);
            if (*t.micro_batch > 0 && *t.accumulation > 0 && product == *t.train_batch) return;
            const auto sequence = s.values.maybe_integer("sequence_parallel_size").value_or(1);
            const Said shown = sequence == 1 ? say("{} ranks", *ranks)
                                             : say("{} ranks ({} / {} sequence-parallel)", *ranks,
                                                   checked_mul(*ranks, sequence), sequence);
            report(batch_key::kTrain,
                   say("{} is not {} micro-batch x {} accumulation x {} = {}", *t.train_batch,
                       *t.micro_batch, *t.accumulation, shown, product),
                   "sizes that multiply to train_batch_size");
          },
  };
}

}  // namespace shardplan::config_rules::batch
