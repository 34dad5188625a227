// What a ds_config depends on besides itself.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "frameworks/deepspeed/auto_resolver.h"
#include "frameworks/deepspeed/options.h"

namespace shardplan {

/// The TrainingArguments (or, with accelerate, the data loader, optimizer and scheduler) that
/// "auto" values are taken from. What is absent takes TrainingArguments' default and is not
/// compared with the file.
struct TrainerArguments {
  std::optional<std::int64_t> per_device_train_batch_size;
  std::optional<std::int64_t> gradient_accumulation_steps;
  std::optional<double> max_grad_norm;
  std::optional<double> learning_rate;
  std::optional<std::pair<double, double>> adam_betas;
  std::optional<double> adam_epsilon;
  std::optional<double> weight_decay;
  std::optional<std::int64_t> warmup_steps;
  std::optional<std::int64_t> total_steps;  ///< optimizer steps of the whole run
  std::optional<bool> fp16;
  std::optional<bool> bf16;
};

struct DsConfigContext {
  DeepSpeedVersion version;
  /// Ranks that share the batch: data-parallel times sequence-parallel ranks. Absent: not known,
  /// and what depends on it is not checked.
  std::optional<std::int64_t> world_size;
  std::int64_t pipeline_parallel = 1;  ///< stages of a PipelineModule
  std::optional<std::int64_t> hidden_size;
  AutoResolver auto_resolver = AutoResolver::none;
  /// Nobody said who resolves "auto", and it is taken for HF Trainer. What only HF Trainer and
  /// accelerate refuse is then no error.
  bool resolver_guessed = false;
  TrainerArguments trainer;
  /// `trainer` is a run's own: what is absent has its default. Else "auto" of a precision is what
  /// most run, and that of a batch follows from the file's other numbers.
  bool trainer_given = false;
  /// The job's own batch: stands in where the file has no batch key, and for "auto".
  std::optional<std::int64_t> micro_batch;
  std::optional<std::int64_t> gradient_accumulation;
};

}  // namespace shardplan
