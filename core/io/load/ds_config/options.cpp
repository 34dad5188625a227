#include "load/ds_config/options.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "formats/dtype.h"
#include "frameworks/deepspeed/config_table.h"

namespace shardplan {
namespace {

/// The option's value: given, or the version's default. None where there is neither.
OptionValue value_in(const DsValues& v, const OptionInfo& option) {
  switch (option.kind) {
    case OptionKind::boolean:
      return v.flag(option.key);
    case OptionKind::number:
      return v.number(option.key);
    case OptionKind::integer: {
      const auto number = v.maybe_integer(option.key);
      return number ? OptionValue(*number) : OptionValue();
    }
    case OptionKind::choice: {
      const NamedValue* choice = find_choice(option.choices, v.maybe_text(option.key).value_or(""));
      return choice != nullptr ? OptionValue(choice->value) : OptionValue();
    }
    default: {
      auto text = v.maybe_text(option.key);
      return text ? OptionValue(std::move(*text)) : OptionValue();
    }
  }
}

std::optional<DType> dtype_at(const DsValues& values, std::string_view path) {
  const auto name = values.maybe_text(path);
  return name ? parse_dtype(*name, kTrainingType) : std::nullopt;
}

std::optional<DType> engine_dtype(const DsValues& v) {
  if (v.flag("fp16.enabled")) return DType::f16;
  if (v.flag("bf16.enabled")) return DType::bf16;
  const bool said = v.given("fp16") != nullptr || v.given("bf16") != nullptr ||
                    v.flag("torch_autocast.enabled") || v.flag("amp.enabled");
  return said ? std::optional(DType::f32) : std::nullopt;
}

/// Under sequence parallelism the engine puts seq_parallel_communication_data_type in place of
/// communication_data_type (runtime/engine.py); before 0.16.5 its key was spelled differently.
std::optional<DType> communication_dtype(const DsValues& v) {
  if (v.maybe_integer("sequence_parallel_size").value_or(1) <= 1)
    return dtype_at(v, "communication_data_type");
  const bool renamed = v.version() >= DeepSpeedVersion{0, 16, 5};
  return dtype_at(v,
                  renamed ? "seq_parallel_communication_data_type" : "seq_parallel_comm_data_type");
}

std::optional<DeepSpeedPipeline> pipeline(const DsValues& v) {
  if (v.given("pipeline") == nullptr) return std::nullopt;
  return DeepSpeedPipeline{
      .stages = v.maybe_integer("pipeline.stages"),
      .partition = v.text("pipeline.partition"),
      .activation_checkpoint_interval = v.integer("pipeline.activation_checkpoint_interval"),
      .pipe_partitioned = v.flag("pipeline.pipe_partitioned"),
      .grad_partitioned = v.flag("pipeline.grad_partitioned")};
}

}  // namespace

DeepSpeedOptions make_deepspeed_options(const DsValues& v, const BatchTriangle& batch) {
  DeepSpeedOptions o;
  o.version = v.version();
  for (const Option<DeepSpeedOptions>& option : kDsConfigTable.options) {
    const OptionValue value = value_in(v, option.info);
    if (is_said(value)) option.access.set(o, value);
  }
  const Json* overlap = v.given("zero_optimization.overlap_comm");
  o.zero.overlap_comm =
      overlap == nullptr ? o.zero.stage == 3 : v.flag("zero_optimization.overlap_comm");
  o.zero.loco = v.given("zero_optimization.zeropp_loco_param") != nullptr;
  o.zero.zenflow = v.given("zero_optimization.zenflow") != nullptr;
  o.engine_dtype = engine_dtype(v);
  o.torch_autocast_dtype = dtype_at(v, "torch_autocast.dtype");
  o.grad_accum_dtype = dtype_at(v, "data_types.grad_accum_dtype");
  o.communication_dtype = communication_dtype(v);
  o.master_weights_16bit =
      v.flag("fp16.fp16_master_weights_and_grads") || v.flag("bf16.bf16_master_weights_and_grads");
  o.train_batch_size = batch.train_batch;
  o.micro_batch = batch.micro_batch;
  o.gradient_accumulation = batch.accumulation;
  o.gradient_clipping = v.number("gradient_clipping");
  o.optimizer_from_program = v.given("optimizer") == nullptr;
  // torch.optim's own; FusedAdam and CPU Adam keep no maximum.
  o.amsgrad = o.torch_adam && v.flag("optimizer.params.amsgrad");
  if (v.given("optimizer.params.momentum") != nullptr)  // SGD's default is none
    o.momentum = v.number("optimizer.params.momentum");
  o.pipeline = pipeline(v);
  o.tensor_parallel = std::max<std::int64_t>(1, v.integer("tensor_parallel.autotp_size"));
  o.sequence_parallel = v.maybe_integer("sequence_parallel_size").value_or(1);
  if (v.flag("expert_parallel.enabled"))
    o.expert_parallel = v.integer("expert_parallel.autoep_size");
  return o;
}

}  // namespace shardplan
