// What the engine knows of a network, read from its config.json: shapes and arithmetic. It is the
// engine's own description; core's model of the same network plays no part in it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "device/operands.h"

namespace shardplan::validator {

/// Llama 3's stretching of the low frequencies; `factor` alone stretches all of them (linear).
struct RotaryScaling {
  double factor = 1;
  bool by_wavelength = false;
  double low_frequency_factor = 1, high_frequency_factor = 4;
  std::int64_t original_positions = 8192;
};

struct Rotary {
  double theta = 10000;
  std::optional<RotaryScaling> scaling;
};

/// Which of the ranks that share each layer.
struct TensorShare {
  int rank = 0, ranks = 1;
};

/// Which of the ranks that divide the experts of a layer.
struct ExpertShare {
  int rank = 0, ranks = 1;
};

/// The MLP of each layer is one of several, chosen token by token (arXiv 1701.06538).
struct ExpertsSpec {
  std::int64_t count = 0;      ///< of a layer
  std::int64_t per_token = 0;  ///< how many of them a token goes to
  bool renormalised = false;   ///< a token's weights are divided by their sum
  float balance = 0;           ///< coefficient of the load-balancing loss; 0: there is none
  bool evenly = false;         ///< tokens go to all experts alike, whatever the router says
};

/// How the matrices of frozen blocks are kept.
enum class BaseStore : std::uint8_t {
  values,      ///< as all else
  nf4,         ///< in 4 bits (device/nf4.h)
  nf4_double,  ///< and their scales in 8
};

/// Low-rank matrices are trained beside linear layers of the blocks and matrices of experts, and
/// nothing else is (LoRA, arXiv 2106.09685): y = x wᵀ + scale · (x aᵀ) bᵀ.
struct LoraSpec {
  std::int64_t rank = 0;
  float scale = 1;
  std::vector<std::string> targets;  ///< the layers' names in transformers, or "all-linear" alone
  std::vector<std::string> parameters;  ///< ends of the names of experts' weights there
  BaseStore base = BaseStore::values;
  bool base_of_experts = false;  ///< experts' matrices are kept so too
};

/// A causal decoder: embedding, blocks of attention and MLP with a norm before each, norm, head.
struct DecoderSpec {
  std::string family;  ///< model_type: gpt2, llama, mistral, qwen2, qwen3, mixtral, qwen3_moe
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t inner = 0;  ///< width of the MLP, or of each expert
  std::optional<ExpertsSpec> experts;
  std::int64_t query_heads = 0, key_value_heads = 0, head_dim = 0;
  std::int64_t vocabulary = 0;
  std::int64_t positions = 0;  ///< the longest sequence; 0: not limited
  NormKind norm = NormKind::rms;
  float epsilon = 1e-5F;
  Activation activation = Activation::swiglu;
  bool qkv_bias = false, output_bias = false, mlp_bias = false;
  bool head_norms = false;       ///< RMS norms of each head of q and k
  bool tied = false;             ///< the head is the embedding
  std::optional<Rotary> rotary;  ///< otherwise positions are learned
  float init_stddev = 0.02F;
  bool scaled_init = false;  ///< GPT-2: projections onto the residual by 1/√(2·layers)
  /// One rank's part of each layer (tensor_share.h): heads and inner widths are this rank's, the
  /// vocabulary is all of it.
  TensorShare share;
  ExpertShare expert_share;  ///< of the experts, this rank's part of them
  std::optional<LoraSpec> lora;

  bool gated() const { return activation == Activation::swiglu; }
  /// Experts that this rank has.
  std::int64_t experts_here() const { return experts ? experts->count / expert_share.ranks : 0; }
  std::int64_t up_width() const { return gated() ? 2 * inner : inner; }
  /// Rows of the embedding and the head on this rank: a multiple of 128, so that rows of logits are
  /// aligned.
  std::int64_t padded_vocabulary() const {
    return round_up(vocabulary, 128 * share.ranks) / share.ranks;
  }
  /// The first token of this rank's rows, and how many of them are tokens.
  std::int64_t first_token() const { return padded_vocabulary() * share.rank; }
  std::int64_t tokens_here() const {
    return std::clamp<std::int64_t>(vocabulary - first_token(), 0, padded_vocabulary());
  }
};

/// Linear layers with bias, ReLU between them, cross-entropy over the last; a token is a sample.
struct MlpSpec {
  std::vector<std::int64_t> widths;
};

using NetworkSpec = std::variant<DecoderSpec, MlpSpec>;

}  // namespace shardplan::validator
