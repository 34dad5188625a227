#include "load/positions.h"

#include <fmt/format.h>

#include <algorithm>

namespace shardplan {

std::optional<Diagnostic> longer_than_positions(const ModelFacts& facts, const Plan& plan,
                                                const std::string& file) {
  const Workload& w = plan.workload;
  const bool generates = w.kind == WorkKind::inference;
  const std::optional<RolloutEngine>& engine = w.generation.engine;
  const std::int64_t most = facts.longest_sequence;
  const std::int64_t longest =
      std::max(w.sequence_length + (generates ? w.generation.new_tokens : 0),
               engine ? engine->model_length : 0);
  if (most == 0 || longest <= most) return std::nullopt;
  std::string message =
      fmt::format("{} is longer than the {} positions of the model", longest, most);
  if (engine && !engine->engine->allows_longer.empty())
    message += fmt::format("; {} does not start unless {}=1", engine->engine->words,
                           engine->engine->allows_longer);
  return Diagnostic{.severity = Severity::warning,
                    .file = file,
                    .key = generates ? "workload.new_tokens" : "workload.sequence_length",
                    .message = std::move(message)};
}

}  // namespace shardplan
