// NeMo Automodel's pipelines (nemo_automodel/components/distributed/pipelining), and what its
// tensor-parallel ranks divide.
#include "import/kinds/nemo_stages.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "import/known_layers.h"
#include "import/vocabulary.h"

namespace shardplan::importing::nemo {
std::int64_t stages_of(const Document& d) {
  return integer_at(d, "distributed.pp_size").value_or(1);
}

void read_local_batch(Key& key) {
  const std::int64_t local = key.integer(1);
  if (stages_of(key.document()) <= 1) return key.take("/workload/micro_batch", local);
  const std::int64_t size =
      integer_at(key.document(), "distributed.pipeline.pp_microbatch_size").value_or(1);
  if (size < 1 || local % size != 0)
    key.refuse(
        fmt::format("{} is no multiple of distributed.pipeline.pp_microbatch_size {}", local, size),
        "a multiple");
  key.take("/workload/micro_batch", size);
  if (key.other("step_scheduler.global_batch_size") == nullptr)
    key.recipe().set("/workload/gradient_accumulation", local / size, key.origin());
}

void read_schedule(Key& key) {
  if (stages_of(key.document()) <= 1) return key.ignore("no pipeline");
  std::string name;
  for (const char c : key.text())
    if (c != '_') name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const std::string word = name == "interleaved1f1b"           ? "interleaved"
                           : name == "zbvzerobubble"           ? "zbv"
                           : name == "1f1b" || name == "gpipe" ? name
                                                               : "";
  if (word.empty())
    key.refuse(fmt::format("the schedule '{}' is not estimated", key.text()),
               "1f1b, gpipe, interleaved1f1b or zbvzerobubble");
  key.take("/parallel/schedule", word);
  if (word != "interleaved" && word != "zbv") return;
  if (!integer_at(key.document(), "distributed.pipeline.layers_per_stage"))
    key.recipe().set("/parallel/virtual_pipeline", 2, key.origin());
}

void take_chunks(const Document& d, Recipe& recipe) {
  constexpr std::string_view kKey = "distributed.pipeline.layers_per_stage";
  const Json* schedule = recipe.find("/parallel/schedule");
  const std::int64_t each = integer_at(d, kKey).value_or(0), stages = stages_of(d);
  const bool chunks = schedule != nullptr && (*schedule == "interleaved" || *schedule == "zbv");
  if (!chunks || each < 1) return;
  const auto fail = [&](std::string message, std::string expected) {
    throw InputError({.file = d.file,
                      .key = std::string(kKey),
                      .message = std::move(message),
                      .expected = std::move(expected)});
  };
  const std::int64_t layers = known_layers(recipe, d);
  if (layers == 0) fail("the model's layers are not known", "a model of the catalogue, or --model");
  std::int64_t all = (layers + each - 1) / each;
  const Json* round =
      value_below(d.value, "distributed.pipeline.round_virtual_stages_to_pp_multiple");
  const std::string to = round != nullptr && round->is_string() ? round->get<std::string>() : "";
  if (to == "up") all += (stages - all % stages) % stages;
  if (to == "down") all -= all % stages;
  if (all % stages != 0 || all < 2 * stages)
    fail(fmt::format("{} layers in parts of {} are {} parts, and {} GPUs want several each", layers,
                     each, all, stages),
         fmt::format("{} layers or fewer, and round_virtual_stages_to_pp_multiple",
                     std::max<std::int64_t>(1, layers / (2 * stages))));
  recipe.set("/parallel/virtual_pipeline", all / stages, {d.file, std::string(kKey)});
}

void read_token_division(Key& key) {
  if (!key.flag()) return key.ignore("tokens are whole on each tensor-parallel GPU");
  if (integer_at(key.document(), "distributed.tp_size").value_or(1) <= 1)
    return key.ignore("no tensor parallelism");
  key.take("/parallel/sequence_parallel", true);
}

}  // namespace shardplan::importing::nemo
