#include <algorithm>

#include "lint/rules/nvme/family.h"

namespace shardplan::lint_rules::nvme {
namespace {

std::vector<Edit> grow_buffer(const Diagnostic& finding, const Json&) {
  std::string digits;
  for (const char c : finding.expected.text)
    if (c >= '0' && c <= '9') digits += c;
  if (digits.empty()) return {};
  return {set_key(finding.key, Json::parse(digits))};
}

/// Elements of the largest tensor's part on one rank.
std::int64_t largest_shard(const Model& model, std::int64_t ranks) {
  std::int64_t largest = 0;
  for (const Parameter& p : model.parameters) largest = std::max(largest, p.numel);
  return (largest + ranks - 1) / ranks;
}

}  // namespace

LintRule small_buffer() {
  return {
      .rule =
          {
              .id = "nvme.small-buffer"_rule,
              .severity = Severity::error,
              .title = "offload_param.buffer_size below the largest shard",
              .explanation =
                  "Every shard is read into one buffer; the swapper asserts that it fits.",
              .source = "deepspeed/runtime/swap_tensor/partitioned_param_swapper.py "
                        "reserve_partitioned_swap_space, swap_in",
              .advice = "Use at least the elements that are shown.",
              .repair = grow_buffer,
          },
      .check =
          [](const LintSubject& s, const Report& report) {
            constexpr const char* kBuffer = "zero_optimization.offload_param.buffer_size";
            if (!on_nvme(s.values, kOffloadParam) || s.model == nullptr || !s.context.world_size)
              return;
            const std::int64_t shard = largest_shard(*s.model, *s.context.world_size);
            const std::int64_t buffer = s.values.integer(kBuffer);
            if (buffer < shard)
              report(kBuffer, say("{} elements do not hold the largest shard, {}", buffer, shard),
                     say("at least {}", shard));
          },
  };
}

}  // namespace shardplan::lint_rules::nvme
