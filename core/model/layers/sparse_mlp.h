// The mixture-of-experts block of a decoder layer: a router, experts, perhaps shared ones.
#pragma once

#include <optional>
#include <string_view>

#include "model/layers/experts.h"

namespace shardplan {

/// How a router makes a token's weights of its logits.
enum class RouterScore : std::uint8_t {
  softmax,            ///< over all experts in fp32, the weights cast to the logits' type (OLMoE)
  softmax_of_chosen,  ///< in fp32 over the chosen experts only (Granite)
  sigmoid,            ///< of logits upcast to fp32 (MiniMax M2)
  sigmoid_as_made,    ///< of logits in their own type (LFM2)
  sigmoid_f32,        ///< of logits multiplied in fp32 (DeepSeek V3, GLM 4.5)
  softmax_f32,        ///< over all experts, of logits multiplied in fp32; divided by a sum that is
                      ///< not less than a number (ERNIE 4.5)
  sparse_mixer,       ///< two experts drawn one after the other (Phi 3.5-MoE)
};

struct SparseMlpShape {
  std::int64_t hidden = 0, experts = 0, top_k = 0, ffn = 0;
  std::int64_t shared_ffn = 0;  ///< 0: no shared experts
  bool gated = true;            ///< else an expert is up, activation, down
  RouterScore score = RouterScore::softmax;
  bool normalize = false;  ///< a token's weights are divided by their sum
  bool scales = false;     ///< and multiplied by a number
  bool experts_first = false;
  std::int64_t expert_width = 0;   ///< that experts take and return; 0: hidden
  bool shared_runs_first = false;  ///< shared experts run before the router
  bool jitters = false;            ///< the input is multiplied by noise, for router and experts
  std::string_view block = "mlp", router = "gate", shared = "shared_experts";
  RouterIs router_is = RouterIs::parameter;
  bool router_bias = false, shared_bias = false;
  std::string_view correction = {};  ///< a frozen parameter of the router, [1, experts]
};

struct SparseMlp {
  SparseMlpShape shape;
  LinearModule router;
  Experts experts;
  std::optional<GatedMlp> shared;
  std::optional<PlainMlp> plain_shared;  ///< where experts have no gate
};

/// Registers block.{router, experts, shared}.
SparseMlp sparse_mlp(ModelBuilder& m, const SparseMlpShape& shape);

/// What experts take is projected to a narrower width before them, and back behind them.
struct LatentExperts {
  LinearModule into, out;
};

/// `latent`: null where experts take the hidden states.
ValueId apply(Graph& g, const SparseMlp& m, Activation activation, ValueId x,
              const LatentExperts* latent = nullptr);

}  // namespace shardplan
