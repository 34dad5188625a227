#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "load/ds_config/rules.h"
#include "load/ds_config/schema.h"

namespace shardplan {
namespace {

Said stages_text(const DsNode& node) {
  return node.stages.size() == 1 ? say("read at stage {}", node.stages.front())
                                 : say("read at stages {}", fmt::join(node.stages, ", "));
}

void report(const DsNode& node, int stage, DsFindings& findings) {
  findings.warning("ds.no-effect-at-stage"_rule, node.path,
                   say("has no effect at ZeRO stage {}: {}", stage,
                       node.effect.empty() ? stages_text(node) : Said(node.effect)));
}

/// An offload block that offloads nothing is not worth a word.
bool switched_off(const DsNode& node, const DsValues& values) {
  return node.child("device") != nullptr &&
         values.maybe_text(node.path + ".device").value_or("none") == "none";
}

void walk(const DsNode& node, const DsValues& values, DsFindings& findings) {
  const int stage = values.stage();
  for (const DsNode& child : node.children) {
    const Json* given = values.given(child.path);
    if (given == nullptr || given->is_null()) continue;
    if (child.block) {
      if (switched_off(child, values)) continue;
      if (child.acts_at(stage))
        walk(child, values, findings);
      else
        report(child, stage, findings);
    } else if (!child.acts_at(stage) && *given != child.default_at(values.version())) {
      report(child, stage, findings);
    }
  }
}

/// Keys that only the NVMe swapper reads.
void report_unused_swapping(const DsValues& values, DsFindings& findings) {
  const auto on_nvme = [&](const std::string& block) {
    return values.stage() == 3 &&
           values.maybe_text("zero_optimization." + block + ".device").value_or("none") == "nvme";
  };
  const auto unused = [&](const std::string& block, std::initializer_list<const char*> keys) {
    if (values.stage() != 3 || on_nvme(block)) return;
    if (switched_off(*ds_schema().find("zero_optimization." + block), values)) return;
    for (const char* key : keys) {
      const std::string path = "zero_optimization." + block + "." + key;
      if (values.given(path) != nullptr)
        findings.note("ds.swap-key-unread"_rule, path,
                      "has no effect: this is read only with the device nvme");
    }
  };
  unused("offload_optimizer",
         {"nvme_path", "buffer_count", "pipeline_read", "pipeline_write", "fast_init"});
  unused("offload_param", {"nvme_path", "buffer_count", "buffer_size", "max_in_cpu"});
  if (values.given("aio") != nullptr && !on_nvme("offload_optimizer") && !on_nvme("offload_param"))
    findings.warning("ds.aio-unread"_rule, "aio", "has no effect: nothing is swapped to NVMe");
}

}  // namespace

void report_ignored_keys(const DsValues& values, DsFindings& findings) {
  walk(ds_schema().root(), values, findings);
  report_unused_swapping(values, findings);
}

}  // namespace shardplan
