// Micro-batches of a step, from the sequences that all GPUs have in it.
#include <fmt/format.h>

#include <algorithm>

#include "import/finisher.h"
#include "job/fields.h"

namespace shardplan::importing {

std::int64_t Finisher::degree(const char* name) const {
  const Json* value = recipe_.find(fmt::format("/parallel/{}", name));
  return value != nullptr && value->is_number_integer() ? value->get<std::int64_t>() : 1;
}

/// Tokens of a pass, where a step has `each` of the `whole` sequences that would fill it.
void Finisher::fill_budget(std::int64_t each, std::int64_t whole) {
  if (each == whole || !recipe_.rlhf.contains("token_budget")) return;
  const auto budget = recipe_.rlhf.at("token_budget").get<std::int64_t>();
  recipe_.rlhf["token_budget"] = (budget * each + whole - 1) / whole;
}

/// Micro-batches of a step from the sequences of all GPUs.
void Finisher::take_batch() {
  if (!recipe_.global_batch || recipe_.find("/workload/gradient_accumulation") != nullptr) return;
  const std::int64_t divided =
      degree("tensor") * degree("pipeline") * degree("sequence") * degree("context");
  const Json* micro = recipe_.find("/workload/micro_batch");
  std::int64_t each = micro == nullptr ? 1 : micro->get<std::int64_t>();
  const std::int64_t ranks = std::max<std::int64_t>(world_ / std::max<std::int64_t>(divided, 1), 1);
  if (recipe_.micro_batch_at_most && micro != nullptr && !flags_.contains("micro-batch")) {
    const std::int64_t whole = each;
    each = std::min(each, std::max<std::int64_t>(1, (*recipe_.global_batch + ranks - 1) / ranks));
    fill_budget(each, whole);
    set_field(recipe_.job, "/workload/micro_batch", each);
    if (each < whole)
      recipe_.note({.kind = Note::Kind::assumed,
                    .key = "micro-batch",
                    .field = fmt::format("workload.micro_batch: {}", each),
                    .reason = fmt::format("{} sequences a step leave each of {} ranks no more",
                                          *recipe_.global_batch, ranks)});
  }
  const std::int64_t at_once = ranks * each;
  if (recipe_.generated)
    recipe_.rlhf["generation_batch"] = std::max<std::int64_t>(1, *recipe_.generated / ranks);
  if (*recipe_.global_batch % at_once != 0)
    recipe_.note({.kind = Note::Kind::warning,
                  .key = "global batch",
                  .reason = fmt::format("{} sequences are no multiple of {} GPUs × {}: rounded up",
                                        *recipe_.global_batch, ranks, each)});
  recipe_.assume(
      "/workload/gradient_accumulation", (*recipe_.global_batch + at_once - 1) / at_once,
      fmt::format("{} sequences a step over {} × {}", *recipe_.global_batch, ranks, each));
}

}  // namespace shardplan::importing
