#include "load/quantized_base.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/format.h"
#include "frameworks/registry.h"
#include "lowering/stored_weights.h"
#include "parallel/degrees.h"

namespace shardplan {
namespace {

constexpr const char* kQuantization = "workload.lora.quantization";
constexpr const char* kPreparation = "workload.lora.prepare_kbit";
constexpr const char* kExperts = "workload.lora.quantize_experts";

class QuantizedBase {
 public:
  QuantizedBase(ObjectReader& job, const Model& model, const Plan& plan)
      : job_(job), model_(model), plan_(plan), framework_(traits_of(plan)) {}

  std::vector<Diagnostic> check() {
    const Lora& lora = *plan_.workload.lora;
    if (lora.prepare_kbit.value_or(false)) check_preparation(lora);
    if (lora.base_of_experts) check_experts(lora);
    if (lora.base != Quantization::none && framework_.shards_parameters(plan_)) {
      about_storage();
      about_evidence();
      about_loading();
      about_nodes();
    }
    if (lora.base != Quantization::none) about_classes();
    if (format_of(lora.base).casts_inputs) about_inputs();
    return std::move(found_);
  }

 private:
  void warn(const char* key, std::string message) {
    found_.push_back({.severity = Severity::warning,
                      .file = job_.file(),
                      .key = key,
                      .message = std::move(message)});
  }

  void check_preparation(const Lora& lora) {
    if (lora.base == Quantization::none)
      job_.fail(kPreparation, "true, and the base is not quantized",
                "workload.lora.quantization, or false");
    if (framework_.keeps_master)
      warn(kPreparation, fmt::format("{} casts parameters back to {}: nothing stays in fp32",
                                     framework_.label.get(), name_of(plan_.precision.params)));
  }

  /// transformers 5.24 replaces linear layers alone (integrations/bitsandbytes.py,
  /// replace_with_bnb_linear); Axolotl quantizes what experts are by itself as it is loaded
  /// (monkeypatch/moe_quant.py, with replace_parameter_4bit of bitsandbytes from 0.48 on).
  void check_experts(const Lora& lora) {
    if (lora.base == Quantization::none)
      job_.fail(kExperts, "true, and the base is not quantized",
                "workload.lora.quantization, or false");
    if (expert_count(model_) == 0) job_.fail(kExperts, "a dense model has no experts", "false");
    if (!framework_.quantizes_experts)
      job_.fail(
          kExperts,
          fmt::format("quantized experts cannot be estimated yet with {}", framework_.label.get()),
          "framework native, or false");
  }

  /// accelerate 1.15 (utils/fsdp_utils.py, fsdp2_prepare_model) leaves what is no floating type out
  /// of the shards; peft's guides say the same of ZeRO-3.
  void about_storage() {
    warn(kQuantization,
         fmt::format(
             "shards are estimated with bnb_4bit_quant_storage {}; with its default, uint8, "
             "accelerate leaves packed weights whole on every GPU, and FSDP1 does not take them",
             name_of(plan_.precision.compute)));
  }

  /// docs/explanation/sharding.md, "FSDP1", and docs/evidence/measurements.md, quantized shards on
  /// two H200.
  void about_evidence() {
    warn(kQuantization,
         "quantized shards rest on one measured run under FSDP2 and one under ZeRO-3, and on none "
         "under "
         "FSDP1: a published 70B run of two GPUs took 11 % more than is said of it, 32 % more with "
         "its shards on the host");
  }

  void about_classes() {
    if (!std::ranges::any_of(model_.parameters, &Parameter::derived_linear)) return;
    warn(
        kQuantization,
        fmt::format("transformers 5 quantizes no linear layer of '{}', whose class is derived from "
                    "nn.Linear: weights stay as wide as those that are not quantized",
                    model_.facts.model_type));
  }

  /// Bytes of everything, before it is divided.
  std::int64_t whole_bytes() const {
    std::int64_t sum = 0;
    model_.for_each_distinct([&](const Parameter& p, std::int64_t repeat) {
      sum += repeat * stored_bytes(p, plan_.kept_type(), plan_.workload.lora->base);
    });
    return sum;
  }

  /// transformers 5.17 builds a quantized model whole on each rank, under zero.Init and with
  /// cpu_ram_efficient_loading too (modeling_utils.py, needs_zero3_init and
  /// _move_missing_keys_from_meta_to_device), and accelerate 1.15 takes it from that GPU alone
  /// (accelerator.py, prepare_model).
  void about_loading() {
    const std::int64_t whole = whole_bytes();
    if (whole <= plan_.cluster.gpu.usable.count()) return;
    warn(kQuantization,
         fmt::format("transformers 5.17 puts the whole quantized model on each GPU before it is "
                     "divided, {}, which {} does not hold: a program has to divide it while it "
                     "loads, as answer.ai's fsdp_qlora does",
                     format_bytes(whole), plan_.cluster.gpu.name));
  }

  /// What Stage3::nodes_hold says, in words.
  void about_nodes() {
    if (!framework_.has_zero || plan_.cluster.world() == 1) return;
    warn(kQuantization,
         "under ZeRO-3 bitsandbytes 0.50 holds on to each packed weight that the forward pass "
         "gathered until the backward pass ends, checkpointed without reentrance or not: all of "
         "the packed model is on each GPU then, which can be more than adapters beside a base "
         "in 16 bits take; FSDP2 lets go of it");
  }

  /// ForwardPass::hold_input, in words.
  void about_inputs() {
    warn(kQuantization,
         fmt::format("bitsandbytes 0.50 keeps the input of every {} linear until the backward pass "
                     "ends, checkpoints or not; columns with values of 6 and more, which trained "
                     "models have few of and new ones many, are kept besides: in the upper bound "
                     "alone",
                     name_of(plan_.workload.lora->base)));
  }

  ObjectReader& job_;
  const Model& model_;
  const Plan& plan_;
  const FrameworkTraits& framework_;
  std::vector<Diagnostic> found_;
};

}  // namespace

std::vector<Diagnostic> check_quantized_base(ObjectReader& job, const Model& model,
                                             const Plan& plan) {
  if (!plan.workload.lora) return {};
  return QuantizedBase(job, model, plan).check();
}

}  // namespace shardplan
