// Nemotron-H and Nemotron 3 (models/nemotron_h): one mixer a layer, a state-space model, attention,
// experts or a plain MLP.
#include <optional>

#include "model/architectures/architectures.h"
#include "model/layers/rotary_attention.h"
#include "model/layers/scan_kernels.h"
#include "model/layers/sparse_mlp.h"
#include "model/layers/state_space.h"

namespace shardplan {
namespace {

enum class Mixer : std::uint8_t { state_space, attention, experts, mlp };

Mixer mixer_of(const ModelConfig& c, std::string_view key, std::string_view name) {
  if (name == "M" || name == "mamba" || name == "linear_attention") return Mixer::state_space;
  if (name == "*" || name == "attention" || name == "full_attention") return Mixer::attention;
  if (name == "E" || name == "moe") return Mixer::experts;
  if (name == "-" || name == "mlp") return Mixer::mlp;
  c.fail(key, "unknown mixer '" + std::string(name) + "'", "mamba, attention, moe or mlp");
}

std::vector<Mixer> read_mixers(const ModelConfig& c) {
  std::vector<Mixer> mixers;
  for (const char* key : {"layers_block_type", "layer_types"})
    if (mixers.empty())
      for (const std::string& name : c.texts(key)) mixers.push_back(mixer_of(c, key, name));
  if (!mixers.empty()) return mixers;
  // Without a pattern the class has one layer of each kind.
  const std::string pattern = c.text("hybrid_override_pattern", "ME*-");
  for (std::size_t i = 0; i < pattern.size(); ++i)
    mixers.push_back(
        mixer_of(c, "hybrid_override_pattern", std::string_view(pattern).substr(i, 1)));
  if (mixers.empty() || mixers.size() > 10'000)
    c.fail("hybrid_override_pattern", "not a pattern of layers", "1 to 10000 of M, E, * and -");
  return mixers;
}

struct NemotronH {
  std::int64_t hidden = 0, ffn = 0, latent = 0;
  bool mlp_bias = false;
  Activation activation = Activation::relu2;
  AttentionShape attention;
  StateSpaceShape mixer;
  SparseMlpShape sparse;
};

struct NemotronHLayer {
  NormModule norm;
  std::optional<StateSpace> mixer;
  std::optional<RotaryAttention> attention;
  std::optional<SparseMlp> sparse;
  LinearModule into_latent, out_of_latent;
  PlainMlp mlp;
};

NemotronH read_nemotron_h(const ModelConfig& c, const BuildOptions& options) {
  NemotronH n;
  n.hidden = c.count({"hidden_size"}, 4096);
  n.ffn = c.count({"intermediate_size"}, 21504);
  n.latent = c.nullable_count("moe_latent_size", {}).value_or(0);
  n.mlp_bias = c.flag("mlp_bias", false);
  n.activation = read_activation(c, "mlp_hidden_act", "relu2");
  AttentionShape& a = n.attention;
  a.heads = c.count({"num_attention_heads"}, 32);
  a.kv_heads = c.nullable_count("num_key_value_heads", 8).value_or(a.heads);
  a.head_dim = c.count({"head_dim"}, 128);
  a.dropout = c.number("attention_dropout", 0.0);
  StateSpaceShape& s = n.mixer;
  s.hidden = n.hidden;
  s.heads = c.count({"mamba_num_heads"}, 128);
  s.inner = checked_mul(s.heads, c.count({"mamba_head_dim"}, 64));
  s.groups = c.count({"mamba_n_groups", "n_groups"}, 8);
  s.norm_groups = s.groups;
  s.state = c.count({"ssm_state_size"}, 128);
  s.kernel = c.count({"mamba_d_conv", "conv_kernel"}, 4);
  s.chunk = c.count({"mamba_chunk_size", "chunk_size"}, 128);
  s.in_bias = s.out_bias = c.flag("use_bias", false);
  s.conv_bias = c.flag("mamba_conv_bias", c.flag("use_conv_bias", true));
  n.sparse = {.hidden = n.hidden,
              .experts = c.count({"n_routed_experts", "num_local_experts"}, 8),
              .ffn = c.count({"moe_intermediate_size"}, 7688),
              .shared_ffn = c.count({"moe_shared_expert_intermediate_size"}, 7688),
              .gated = false,
              .score = RouterScore::sigmoid_f32,
              .normalize = c.flag("norm_topk_prob", true),
              .scales = true,
              .experts_first = true,
              .expert_width = n.latent,
              .block = "mixer",
              .shared_bias = n.mlp_bias};
  if (!options.counts_only)
    n.sparse.top_k = experts_per_token(c, "num_experts_per_tok", 2, n.sparse.experts);
  return n;
}

NemotronHLayer declare_nemotron_h(ModelBuilder& m, const ModelConfig& c, const NemotronH& n,
                                  Mixer mixer) {
  NemotronHLayer l;
  l.norm = m.rms_norm("norm", n.hidden);
  switch (mixer) {
    case Mixer::state_space:
      l.mixer = state_space(m, c, n.mixer);
      return l;
    case Mixer::attention:
      l.attention = rotary_attention(m, n.hidden, n.attention, false, false, false, "mixer");
      return l;
    case Mixer::experts:
      l.sparse = sparse_mlp(m, n.sparse);
      if (n.latent == 0) return l;
      l.into_latent = m.linear("mixer.fc1_latent_proj", n.hidden, n.latent, n.mlp_bias);
      l.out_of_latent = m.linear("mixer.fc2_latent_proj", n.latent, n.hidden, n.mlp_bias);
      return l;
    case Mixer::mlp:
      l.mlp = plain_mlp(m, "mixer", n.hidden, n.ffn, n.mlp_bias);
  }
  return l;
}

ValueId mixed(Graph& g, const ModelBuilder& m, const NemotronH& n, const NemotronHLayer& l,
              const Positions& at, ValueId x) {
  if (l.mixer) return apply(g, m, *l.mixer, x);
  if (l.attention) return apply(g, *l.attention, m.options().attention, at, x);
  if (!l.sparse) return plain_mlp(g, l.mlp, n.activation, x);
  const LatentExperts latent{l.into_latent, l.out_of_latent};
  return apply(g, *l.sparse, n.activation, x, n.latent > 0 ? &latent : nullptr);
}

}  // namespace

Model build_nemotron_h(const ModelConfig& c, const BuildOptions& options) {
  require_training(c, options, "state spaces");
  const NemotronH n = read_nemotron_h(c, options);
  const std::vector<Mixer> mixers = read_mixers(c);
  const auto layers = std::ssize(mixers);
  ModelBuilder m(options);
  m.facts() = {.hidden = n.hidden,
               .layers = layers,
               .vocabulary = c.count({"vocab_size"}, 131072),
               .max_positions = c.count_or_zero("max_position_embeddings", 4096),
               .attention_heads = n.attention.heads,
               .key_value_heads = n.attention.kv_heads,
               .undivided = true};
  note_state_kernels(m, "state spaces", "mamba_ssm and causal_conv1d");
  const auto kind = [&](std::int64_t i) {
    const Mixer mixer = mixers[static_cast<std::size_t>(i)];
    return static_cast<int>(mixer) << 2 | (mixer == Mixer::experts ? kSparseLayer : 0);
  };
  const DecoderStack stack{.hidden = n.hidden,
                           .vocabulary = m.facts().vocabulary,
                           .tied = false,  // whatever the file says
                           .runs = layer_runs(layers, kind),
                           .attention = options.attention,
                           .embedding = "model.embeddings",
                           .final_norm = "model.norm_f",
                           .logits = LogitMap::upcast};
  return build_decoder(
      m, stack,
      [&](ModelBuilder& b, int of) {
        return declare_nemotron_h(b, c, n, static_cast<Mixer>(of >> 2));
      },
      [&](Graph& g, const NemotronHLayer& l, int, const Positions& at, ValueId x) {
        const ValueId normal = rms_norm(g, l.norm, x);
        return g.map(OpKind::add, x, mixed(g, m, n, l, at, normal));
      });
}

}  // namespace shardplan
