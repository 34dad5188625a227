#include "load/ds_config/rules/trainer/mismatch.h"

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/checked.h"
#include "json/reader.h"
#include "load/ds_config/auto_values.h"
#include "load/ds_config/repairs.h"
#include "load/ds_config/schema.h"
#include "load/ds_config/values.h"

namespace shardplan::config_rules::trainer {
namespace {

constexpr std::string_view kMatch = "transformers: integrations/deepspeed.py fill_match";
constexpr std::string_view kWriteAuto = "Write \"auto\" in the ds_config.";

enum Mismatch : std::size_t { batch, optimizer, scheduler, precision, clipping };

constexpr std::array kRules{
    Rule{.id = "hf.batch-mismatch"_rule,
         .severity = Severity::error,
         .title = "The batch differs from TrainingArguments",
         .explanation =
             "HF Trainer compares the ds_config with its arguments, defaults included, and stops "
             "when they differ.",
         .source = kMatch,
         .advice = "Write \"auto\" in the ds_config, and the number in the arguments.",
         .repair = repair::set_auto},
    Rule{.id = "hf.optimizer-mismatch"_rule,
         .severity = Severity::error,
         .title = "The optimizer differs from TrainingArguments",
         .explanation = "Learning rate, betas, epsilon and weight decay are compared one by one.",
         .source = kMatch,
         .advice = kWriteAuto,
         .repair = repair::set_auto},
    Rule{.id = "hf.scheduler-mismatch"_rule,
         .severity = Severity::error,
         .title = "The scheduler differs from TrainingArguments",
         .explanation = "Warm-up and total steps are compared with the arguments.",
         .source = kMatch,
         .advice = kWriteAuto,
         .repair = repair::set_auto},
    Rule{.id = "hf.precision-mismatch"_rule,
         .severity = Severity::error,
         .title = "fp16 or bf16 differs from TrainingArguments",
         .explanation =
             "The Trainer casts by its own arguments and stops when the engine would use another "
             "type.",
         .source = kMatch,
         .advice = kWriteAuto,
         .repair = repair::set_auto},
    Rule{.id = "hf.clipping-mismatch"_rule,
         .severity = Severity::error,
         .title = "Clipping differs from max_grad_norm",
         .explanation =
             "max_grad_norm is 1.0 unless it is set, and gradient_clipping must be the same.",
         .source = kMatch,
         .advice = kWriteAuto,
         .repair = repair::set_auto},
};

const Rule& rule_for(std::string_view path) {
  if (path.starts_with("optimizer.")) return kRules[optimizer];
  if (path.starts_with("scheduler.")) return kRules[scheduler];
  if (path.starts_with("fp16.") || path.starts_with("bf16.")) return kRules[precision];
  return kRules[path == "gradient_clipping" ? clipping : batch];
}

/// world x micro-batch x accumulation, where all three were given.
Json expected_train_batch(const Json& document, const DsConfigContext& context) {
  const TrainerArguments& args = context.trainer;
  if (!context.world_size || !args.per_device_train_batch_size || !args.gradient_accumulation_steps)
    return {};
  return checked_mul(
      checked_mul(*args.per_device_train_batch_size, *args.gradient_accumulation_steps),
      *context.world_size / sequence_parallel_of(document));
}

/// Rules whose keys HF Trainer compares with its arguments when the file has a value, with the
/// argument that was really given.
Json expected_by_trainer(std::string_view rule, const Json& document,
                         const DsConfigContext& context) {
  const TrainerArguments& args = context.trainer;
  const auto of = [](const auto& value) { return value ? Json(*value) : Json(); };
  if (rule == "micro_batch") return of(args.per_device_train_batch_size);
  if (rule == "accumulation") return of(args.gradient_accumulation_steps);
  if (rule == "train_batch") return expected_train_batch(document, context);
  if (rule == "max_grad_norm") return of(args.max_grad_norm);
  if (rule == "learning_rate") return of(args.learning_rate);
  if (rule == "epsilon") return of(args.adam_epsilon);
  if (rule == "weight_decay") return of(args.weight_decay);
  if (rule == "warmup_steps") return of(args.warmup_steps);
  if (rule == "total_steps") return of(args.total_steps);
  if (rule == "fp16") return of(args.fp16);
  if (rule == "bf16") return of(args.bf16);
  if (rule == "betas" && args.adam_betas)
    return Json::array({args.adam_betas->first, args.adam_betas->second});
  return {};
}

}  // namespace

std::span<const Rule> mismatches() {
  return kRules;
}

void compare_with_trainer(const Json& document, const DsConfigContext& context,
                          DsFindings& findings) {
  for (const std::string& path : ds_schema().paths()) {
    const Json* given = value_at(document, path);
    if (given == nullptr || given->is_null()) continue;
    const std::string& rule = ds_schema().find(path)->trainer_rule;
    if (rule.empty()) continue;
    const Json expected = expected_by_trainer(rule, document, context);
    if (expected.is_null() || *given == expected) continue;
    Report(rule_for(path), findings)(
        path,
        say("{} differs from the training arguments, which HF Trainer refuses",
            given->is_array() ? given->dump() : describe(*given)),
        say("{} or \"auto\"", expected.dump()));
  }
}

}  // namespace shardplan::config_rules::trainer
