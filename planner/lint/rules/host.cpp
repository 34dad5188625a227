// Host memory, NVMe and saving.
#include <fmt/format.h>

#include "base/checked.h"
#include "base/format.h"
#include "lint/rules/families.h"

namespace shardplan {
namespace {

constexpr std::string_view kEstimate = "docs/memory.md";

constexpr Rule kRules[] = {
    {"fit.host"_rule, Severity::error, "Offloaded states do not fit the host",
     "The kernel kills a rank with signal 9 and no message of DeepSpeed's.",
     "docs/memory.md; issues 4239, 4571 of DeepSpeed",
     "Offload less, use more nodes, or put the states on NVMe at stage 3."},
    {"fit.nvme"_rule, Severity::error, "Offloaded states do not fit the NVMe",
     "Writes fail when the device is full, and reads return too few bytes.",
     "docs/memory.md; issue 3376 of DeepSpeed", "Offload less, or use more nodes."},
    {"host.every-rank-loads"_rule, Severity::warning, "Every rank loads the whole model",
     "Without zero.Init each process of a node builds the model in fp32 on the host before "
     "anything "
     "is sharded.",
     "transformers PR 25107; accelerate: utils/dataclasses.py zero3_init_flag",
     "Use stage 3 with zero.Init (zero3_init_flag), or load with low_cpu_mem_usage."},
    {"host.pinned"_rule, Severity::warning, "Pinned memory takes most of the host",
     "Pinned pages cannot be swapped or shared; drivers, containers and WSL limit them well below "
     "the installed memory.",
     "issues 7150, 3481 of DeepSpeed", "Set pin_memory to false, or offload less."},
    {"host.pinned-by-default"_rule, Severity::note, "Offload buffers are pinned by default",
     "From 0.19.5 on pin_memory is true unless it is said otherwise.",
     "deepspeed/runtime/zero/offload_config.py", "Write pin_memory, whichever is meant."},
    {"save.gathers-on-host"_rule, Severity::warning, "Saving needs the whole model on one host",
     "stage3_gather_16bit_weights_on_model_save collects all 16-bit weights on rank 0, on top of "
     "what "
     "is offloaded there.",
     "deepspeed/runtime/engine.py _zero3_consolidated_16bit_state_dict; issue 893 of DeepSpeed",
     "Save shards, and convert them with zero_to_fp32 elsewhere."},
    {"save.shards-only"_rule, Severity::note, "Saving at stage 3 writes shards",
     "Without stage3_gather_16bit_weights_on_model_save no 16-bit model is written: "
     "save_16bit_model "
     "does nothing, and the weights are made from the shards afterwards.",
     "deepspeed/runtime/engine.py save_16bit_model", "Run zero_to_fp32.py, or gather on save."},
};

constexpr const char* kGather = "zero_optimization.stage3_gather_16bit_weights_on_model_save";

Said needs(std::int64_t bytes, const Said& of) {
  return say("needs {} of {}", format_bytes(bytes), of);
}

void check_fit(const PricedJob& job, DsFindings& findings) {
  const Verdict& v = job.estimate().verdict;
  if (v.host.fit == Fit::does_not_fit)
    findings.error("fit.host"_rule, "zero_optimization.offload_optimizer",
                   needs(v.host.needed, "each host's memory"),
                   say("well below {}", format_bytes(v.host.available.value_or(0))));
  if (v.nvme.fit == Fit::does_not_fit && v.nvme.available.value_or(0) > 0)
    findings.error("fit.nvme"_rule, "zero_optimization.offload_optimizer.device",
                   needs(v.nvme.needed, "each node's NVMe"),
                   say("at most {}", format_bytes(v.nvme.available.value_or(0))));
}

void check_loading(const LintSubject& s, const PricedJob& job, std::int64_t host,
                   DsFindings& findings) {
  const bool by_init =
      s.values.stage() == 3 && (s.accelerate == nullptr || s.accelerate->zero3_init);
  const bool by_stages = job.job().plan.parallel.pipeline > 1;  // PipelineModule builds its own
  if (by_init || by_stages) return;
  constexpr std::int64_t kFp32 = 4;
  const std::int64_t ranks = job.job().plan.cluster.gpus_per_node;
  const std::int64_t bytes =
      checked_mul(checked_mul(job.job().model.parameter_count(), kFp32), ranks);
  if (bytes > host)
    findings.warning("host.every-rank-loads"_rule, "zero_optimization.stage",
                     say("{} ranks load {} in fp32 on a host of {}", ranks, format_bytes(bytes),
                         format_bytes(host)),
                     "zero.Init at stage 3, or low_cpu_mem_usage");
}

void check_saving(const LintSubject& s, const PricedJob& job, std::int64_t host,
                  DsFindings& findings) {
  if (s.values.stage() != 3 || !s.values.flag(kGather)) return;
  constexpr std::int64_t kHalf = 2;
  const std::int64_t whole = checked_mul(job.job().model.parameter_count(), kHalf);
  const std::int64_t together = checked_add(whole, job.price().host);
  if (together > host)
    findings.warning("save.gathers-on-host"_rule, kGather,
                     say("collects {} on a host of {} that holds {} already", format_bytes(whole),
                         format_bytes(host), format_bytes(job.price().host)),
                     "false");
}

void note_pinning(const DsValues& v, DsFindings& findings) {
  for (const std::string block :
       {"zero_optimization.offload_optimizer", "zero_optimization.offload_param"}) {
    const std::string key = block + ".pin_memory";
    if (v.maybe_text(block + ".device").value_or("none") == "none") continue;
    if (v.given(key) == nullptr && v.flag(key))
      findings.note("host.pinned-by-default"_rule, block, "its buffers are pinned");
  }
}

}  // namespace

std::span<const Rule> host_rules() {
  return kRules;
}

void check_host(const LintSubject& s, LintFindings& findings) {
  note_pinning(s.values, findings.config);
  if (s.values.stage() == 3 && !s.values.flag(kGather))
    findings.config.note("save.shards-only"_rule, kGather, "is off: checkpoints hold shards");
  if (s.priced == nullptr) return;
  const PricedJob& job = *s.priced;
  check_fit(job, findings.config);
  const auto& memory = job.job().plan.cluster.host_memory;
  if (!memory) return;
  const std::int64_t host = memory->count();
  check_loading(s, job, host, findings.config);
  check_saving(s, job, host, findings.config);
  const std::int64_t pinned = job.estimate().host_per_node.pinned;
  if (pinned > host / 2)
    findings.config.warning("host.pinned"_rule, "zero_optimization.offload_optimizer.pin_memory",
                            say("pins {} of {}", format_bytes(pinned), format_bytes(host)),
                            "less than half of the host");
}

}  // namespace shardplan
