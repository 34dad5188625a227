#include "lint/rules/versions/family.h"
#include "load/ds_config/schema.h"
#include "load/ds_config/version.h"

namespace shardplan::lint_rules::versions {
namespace {

/// An absent block's defaults matter to nobody, unless the block acts by itself.
bool acts(const DsNode& key, const LintSubject& s) {
  if (!key.known_at(s.values.version()) || !key.acts_at(s.values.stage())) return false;
  if (key.path == "bf16.check_grad_overflow") return s.values.flag("bf16.enabled");
  if (key.path == "zero_optimization.use_multi_rank_bucket_allreduce") return s.values.stage() > 0;
  const std::size_t dot = key.path.rfind('.');
  if (dot == std::string::npos) return key.path != "steps_per_print";
  const std::string block = key.path.substr(0, dot);
  if (s.values.given(block) == nullptr || key.path == "bf16.immediate_grad_update") return false;
  const bool offload = block.ends_with(".offload_optimizer") || block.ends_with(".offload_param");
  return !offload || s.values.maybe_text(block + ".device").value_or("none") != "none";
}

/// "true at first, false from 0.16.4 on"
Said history_of(const DsNode& key) {
  Said history;
  for (const DsChange& change : key.changes) {
    const std::string value = change.value.dump();
    const Said here = change.since == DeepSpeedVersion{0, 0, 0}
                          ? say("{} at first", value)
                          : say("{} from {} on", value, to_string(change.since));
    history = history.empty() ? here : say("{}, {}", history, here);
  }
  return history;
}

}  // namespace

LintRule default_moved() {
  return {
      .rule =
          {
              .id = "version.default-moved"_rule,
              .severity = Severity::note,
              .title = "A default that differs between versions",
              .explanation =
                  "The key is not in the file and acts in this configuration, and the version that "
                  "was named has another default than the newest: the same file trains "
                  "differently, "
                  "or needs other memory, after an upgrade.",
              .source = "data/deepspeed/schema.json, read from DeepSpeed's tags v0.10.0 to 0.19.6",
              .advice = "Write the value that is meant.",
          },
      .check =
          [](const LintSubject& s, const Report& report) {
            if (!s.version_given) return;  // the newest is meant, or any
            for (const std::string& path : ds_schema().paths()) {
              const DsNode& key = *ds_schema().find(path);
              if (key.changes.size() < 2 || value_at(s.document, path) != nullptr ||
                  !acts(key, s) || key.default_at(s.values.version()) == key.changes.back().value)
                continue;
              const Said history = history_of(key);
              const std::string now = key.default_at(s.values.version()).dump();
              report(path, say("not in the file: {} with DeepSpeed {}; {}", now,
                               to_string(s.values.version()), history));
            }
          },
  };
}

}  // namespace shardplan::lint_rules::versions
