#include "base/checked.h"
#include "base/format.h"
#include "lint/rules/host/family.h"

namespace shardplan::lint_rules::host {

LintRule every_rank_loads() {
  return {
      .rule =
          {
              .id = "host.every-rank-loads"_rule,
              .severity = Severity::warning,
              .title = "Every rank loads the whole model",
              .explanation =
                  "Without zero.Init each process of a node builds the model in fp32 on the host "
                  "before anything is sharded.",
              .source = "transformers PR 25107; accelerate: utils/dataclasses.py zero3_init_flag",
              .advice =
                  "Use stage 3 with zero.Init (zero3_init_flag), or load with low_cpu_mem_usage.",
          },
      .check =
          [](const LintSubject& s, const Report& report) {
            const auto host = host_memory(s);
            if (!host) return;
            const Job& job = s.priced->job();
            const bool by_init =
                s.values.stage() == 3 && (s.accelerate == nullptr || s.accelerate->zero3_init);
            const bool by_stages = job.plan.parallel.pipeline > 1;  // PipelineModule builds its own
            if (by_init || by_stages) return;
            constexpr std::int64_t kFp32 = 4;
            const std::int64_t ranks = job.plan.cluster.gpus_per_node;
            const std::int64_t bytes =
                checked_mul(checked_mul(job.model.parameter_count(), kFp32), ranks);
            if (bytes > *host)
              report("zero_optimization.stage",
                     say("{} ranks load {} in fp32 on a host of {}", ranks, format_bytes(bytes),
                         format_bytes(*host)),
                     "zero.Init at stage 3, or low_cpu_mem_usage");
          },
  };
}

}  // namespace shardplan::lint_rules::host
