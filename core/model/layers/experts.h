// Mixture-of-experts blocks as transformers 5.17 trains them.
//
// Modelled: integrations/moe.py, grouped_mm_experts_forward, the default on CUDA devices of compute
// capability 8.0 and above. The rows of all (token, expert) pairs are sorted by expert, run through
// one grouped product over the 3-D weights, weighted, put back in order and summed over the experts
// of a token. The "eager" loop over experts and kernels from elsewhere keep other tensors.
#pragma once

#include <optional>
#include <string_view>

#include "model/config.h"
#include "model/layers/mlp.h"

namespace shardplan {

struct Experts {
  ModuleId module = kNone;
  ParameterId gate_up = kNone, down = kNone;
  ParameterId gate_up_bias = kNone, down_bias = kNone;
  std::int64_t count = 0, hidden = 0, ffn = 0;
  std::optional<DeepSpeedMoe> moe;       ///< of deepspeed.moe.layer.MoE: gate and up apart
  ParameterId gate = kNone, up = kNone;  ///< up without gate and gate_up: no gated activation
  std::optional<LoraModules> gate_up_lora, down_lora;  ///< peft's target_parameters
};

/// Registers name.gate_up_proj [E, 2f, h] and name.down_proj [E, h, f]; for DeepSpeed's own layer
/// the gated experts' three weights, each for all experts of a rank.
Experts experts(ModelBuilder& m, std::string_view name, std::int64_t count, std::int64_t hidden,
                std::int64_t ffn);
/// Experts without a gate, as Megatron Core has them: name.up_proj [E, f, h], name.down_proj.
Experts plain_experts(ModelBuilder& m, std::string_view name, std::int64_t count,
                      std::int64_t hidden, std::int64_t ffn);
/// The layout of gpt-oss: [E, h, 2f] and [E, f, h], each followed by its bias.
Experts transposed_experts(ModelBuilder& m, std::string_view name, std::int64_t count,
                           std::int64_t hidden, std::int64_t ffn);

/// The experts of a token, from `key`; throws when there are more than experts.
std::int64_t experts_per_token(const ModelConfig& config, std::string_view key,
                               std::int64_t fallback, std::int64_t experts);

/// What has the router's weight: a module of its own (or a class made of nn.Linear), or an
/// nn.Linear itself. bitsandbytes stores the latter alone in fewer bits
/// (transformers/integrations/bitsandbytes.py, replace_with_bnb_linear: type(module) is nn.Linear).
enum class RouterIs : std::uint8_t { parameter, linear };

/// Registers name.weight [E, h] (and name.bias).
LinearModule router(ModelBuilder& m, std::string_view name, std::int64_t hidden,
                    std::int64_t experts, bool bias = false, RouterIs is = RouterIs::parameter);

/// The scores of a router and the weights of the chosen experts, [tokens, E] and [tokens, k].
struct Routing {
  ValueId logits = kNone, weights = kNone;
};

/// softmax in fp32 over all experts, the k largest, divided by their sum if `normalize`.
Routing softmax_routing(Graph& g, const LinearModule& router, std::int64_t top_k, bool normalize,
                        ValueId x);
/// A router whose product runs in fp32 from fp32 copies of x and the weight (DeepSeek).
ValueId f32_logits(Graph& g, const LinearModule& router, ValueId x);
/// The k chosen entries of each row, with their int64 indices.
ValueId choose(Graph& g, ValueId scores, std::int64_t top_k);
/// weights / their sum.
ValueId normalize_rows(Graph& g, ValueId weights);
/// weights / max(their sum, a number).
ValueId normalize_rows_clamped(Graph& g, ValueId weights);

/// What facts.assumed says of a configured router loss (output_router_logits), which is not
/// counted.
void note_router_loss(std::vector<std::string>& assumed, const ModelConfig& config);
/// Says in facts.assumed that a configured router loss (output_router_logits) is not counted.
void note_router_loss(ModelBuilder& m, const ModelConfig& config);

enum class ExpertGate : std::uint8_t {
  activation,  ///< act(gate)·up
  clamped,     ///< gpt-oss: clamped gate and up, gate·sigmoid(1.702·gate)·(up + 1)
};

/// Routes x [tokens, h] through its experts; `weights` are [tokens, k].
ValueId apply(Graph& g, const Experts& e, ExpertGate gate, Activation activation, ValueId x,
              ValueId weights);

}  // namespace shardplan
