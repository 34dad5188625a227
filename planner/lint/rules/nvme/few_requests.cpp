#include "base/format.h"
#include "base/units.h"
#include "lint/rules/nvme/family.h"

namespace shardplan::lint_rules::nvme {

LintRule few_requests() {
  return {
      .rule =
          {
              .id = "nvme.few-requests"_rule,
              .severity = Severity::note,
              .title = "Few bytes in flight to the NVMe",
              .explanation = "block_size x queue_depth x intra_op_parallelism below 4 MiB leaves a "
                             "device idle "
                             "between requests.",
              .source = "docs/_tutorials/deepnvme.md",
              .advice = "Raise queue_depth, or measure with ds_nvme_tune.",
          },
      .check =
          [](const LintSubject& s, const Report& report) {
            constexpr double kEnough = 4 * kMiB;
            const double flying = static_cast<double>(s.values.integer("aio.block_size")) *
                                  static_cast<double>(s.values.integer("aio.queue_depth")) *
                                  static_cast<double>(s.values.integer("aio.intra_op_parallelism"));
            if (anything_on_nvme(s.values) && flying < kEnough)
              report("aio",
                     say("{} in flight at once", format_bytes(static_cast<std::int64_t>(flying))),
                     "at least 4 MiB");
          },
  };
}

}  // namespace shardplan::lint_rules::nvme
