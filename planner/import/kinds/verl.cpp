// verl's YAML and command lines. Its losses are its own (cross-entropy in place over 16-bit logits,
// without padding), and its batches are budgets of tokens: a workload of kind rlhf has neither.
#include <fmt/format.h>

#include "base/diagnostic.h"
#include "import/kinds/kind.h"

namespace shardplan::importing::verl {
namespace {

bool is_verl(const Document& d) {
  return has_any(d, {"actor_rollout_ref", "actor_rollout_ref.model.path"}) ||
         d.program.find("verl.trainer") != std::string::npos ||
         (has_any(d, {"model.partial_pretrain"}) && has_any(d, {"optim", "trainer"}));
}

std::string text_at(const Document& d, std::string_view path, std::string_view otherwise) {
  const Json* value = value_below(d.value, path);
  return value != nullptr && value->is_string() ? value->get<std::string>()
                                                : std::string(otherwise);
}

void read(const Document& d, Recipe&) {
  const std::string strategy = text_at(d, "actor_rollout_ref.actor.strategy", "fsdp");
  const std::string engine = text_at(d, "actor_rollout_ref.rollout.name", "vllm");
  throw InputError(
      {.file = d.file,
       .key = "actor_rollout_ref.actor.strategy",
       .message = fmt::format("a verl configuration: its actor under {} has losses of verl's own, "
                              "beside {}: they are not estimated yet",
                              strategy, engine),
       .expected = "a job with workload.kind rlhf and workload.rollout (docs/rlhf.md)",
       .position = d.positions.find("actor_rollout_ref")});
}

}  // namespace

extern const Kind kKind;
const Kind kKind{"verl", "a verl configuration", is_verl, read};

}  // namespace shardplan::importing::verl
