// HF Trainer's trainer_state.json, in the output folder and in every checkpoint. Formats:
// TrainerState in src/transformers/trainer_callback.py; speed_metrics() and TrainerMemoryTracker in
// src/transformers/trainer_utils.py, huggingface/transformers at c599e98. The last entry of
// log_history, once training is done:
//  {"step": 200, "train_runtime": 225.8005, "train_steps_per_second": 0.886, ...}
// with skip_memory_metrics=False also "before_init_mem_gpu" and what each stage added to it.
#include <nlohmann/json.hpp>

#include "json/document.h"
#include "logs/kinds.h"

namespace shardplan::logs {
namespace {

std::optional<double> number(const Json& entry, const char* key) {
  const auto found = entry.find(key);
  if (found == entry.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

/// What was there when the run began, what it kept, and what it had at most on top when it ended.
std::optional<std::int64_t> allocated(const Json& entry) {
  const auto before = number(entry, "before_init_mem_gpu");
  const auto kept = number(entry, "train_mem_gpu_alloc_delta");
  const auto peak = number(entry, "train_mem_gpu_peaked_delta");
  if (!before || !kept || !peak) return std::nullopt;
  const double bytes =
      *before + number(entry, "init_mem_gpu_alloc_delta").value_or(0) + *kept + *peak;
  if (bytes <= 0) return std::nullopt;
  return static_cast<std::int64_t>(bytes);
}

Logged read_trainer_state(std::string_view text, const StepSize&) {
  Logged log;
  const Json state = Json::parse(text, nullptr, false);
  if (!state.is_object() || !state.contains("log_history")) return log;
  const Json& history = state["log_history"];
  if (!history.is_array()) return log;
  for (const Json& entry : history) {
    if (!entry.is_object()) continue;
    const auto runtime = number(entry, "train_runtime"), steps = number(entry, "step");
    if (!runtime || !steps || *steps < 1) continue;
    log.mean = MeanStep{*runtime / *steps, static_cast<std::int64_t>(*steps), true};
    log.memory.allocated = allocated(entry);
  }
  return log;
}

}  // namespace

const LogKind kTrainerState{"HF Trainer's trainer_state.json",
                            "\"train_runtime\" in \"log_history\"", read_trainer_state};

}  // namespace shardplan::logs
