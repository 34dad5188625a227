// Nemotron-H and Nemotron 3 (models/nemotron_h): one mixer a layer, a state-space model, attention,
// experts or a plain MLP.
#include "model/architectures/architectures.h"
#include "model/architectures/counted.h"
#include "model/layers/experts.h"

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
  std::int64_t hidden, heads, kv_heads, head_dim, ffn;
  std::int64_t ssm_heads, ssm_inner, ssm_groups, state, kernel;
  std::int64_t experts, expert_ffn, shared_ffn, latent;
  bool bias, conv_bias, mlp_bias;
};

NemotronH read_nemotron_h(const ModelConfig& c) {
  NemotronH n{};
  n.hidden = c.count({"hidden_size"}, 4096);
  n.heads = c.count({"num_attention_heads"}, 32);
  n.kv_heads = c.nullable_count("num_key_value_heads", 8).value_or(n.heads);
  n.head_dim = c.count({"head_dim"}, 128);
  n.ffn = c.count({"intermediate_size"}, 21504);
  n.ssm_heads = c.count({"mamba_num_heads"}, 128);
  n.ssm_inner = checked_mul(n.ssm_heads, c.count({"mamba_head_dim"}, 64));
  n.ssm_groups = c.count({"mamba_n_groups", "n_groups"}, 8);
  n.state = c.count({"ssm_state_size"}, 128);
  n.kernel = c.count({"mamba_d_conv", "conv_kernel"}, 4);
  n.experts = c.count({"n_routed_experts", "num_local_experts"}, 8);
  n.expert_ffn = c.count({"moe_intermediate_size"}, 7688);
  n.shared_ffn = c.count({"moe_shared_expert_intermediate_size"}, 7688);
  n.latent = c.nullable_count("moe_latent_size", {}).value_or(0);
  n.bias = c.flag("use_bias", false);
  n.conv_bias = c.flag("mamba_conv_bias", c.flag("use_conv_bias", true));
  n.mlp_bias = c.flag("mlp_bias", false);
  return n;
}

void register_state_space(ModelBuilder& m, const NemotronH& n) {
  const std::int64_t mixed = n.ssm_inner + 2 * checked_mul(n.ssm_groups, n.state);
  m.tensor("mixer.dt_bias", {n.ssm_heads}, ParameterKind::other);
  m.tensor("mixer.A_log", {n.ssm_heads}, ParameterKind::other);
  m.tensor("mixer.D", {n.ssm_heads}, ParameterKind::other);
  m.tensor("mixer.conv1d.weight", {mixed, 1, n.kernel}, ParameterKind::other);
  if (n.conv_bias) m.tensor("mixer.conv1d.bias", {mixed}, ParameterKind::bias);
  m.linear("mixer.in_proj", n.hidden, n.ssm_inner + mixed + n.ssm_heads, n.bias);
  m.rms_norm("mixer.norm", n.ssm_inner);
  m.linear("mixer.out_proj", n.ssm_inner, n.hidden, n.bias);
}

void register_experts(ModelBuilder& m, const NemotronH& n) {
  const std::int64_t width = n.latent > 0 ? n.latent : n.hidden;
  m.tensor("mixer.experts.up_proj", {n.experts, n.expert_ffn, width}, ParameterKind::expert);
  m.tensor("mixer.experts.down_proj", {n.experts, width, n.expert_ffn}, ParameterKind::expert);
  router(m, "mixer.gate", n.hidden, n.experts);
  m.linear("mixer.shared_experts.up_proj", n.hidden, n.shared_ffn, n.mlp_bias);
  m.linear("mixer.shared_experts.down_proj", n.shared_ffn, n.hidden, n.mlp_bias);
  if (n.latent == 0) return;
  m.linear("mixer.fc1_latent_proj", n.hidden, n.latent, n.mlp_bias);
  m.linear("mixer.fc2_latent_proj", n.latent, n.hidden, n.mlp_bias);
}

void register_mixer(ModelBuilder& m, const NemotronH& n, Mixer mixer) {
  switch (mixer) {
    case Mixer::state_space:
      return register_state_space(m, n);
    case Mixer::experts:
      return register_experts(m, n);
    case Mixer::attention:
      m.linear("mixer.q_proj", n.hidden, n.heads * n.head_dim);
      m.linear("mixer.k_proj", n.hidden, n.kv_heads * n.head_dim);
      m.linear("mixer.v_proj", n.hidden, n.kv_heads * n.head_dim);
      m.linear("mixer.o_proj", n.heads * n.head_dim, n.hidden);
      return;
    case Mixer::mlp:
      m.linear("mixer.up_proj", n.hidden, n.ffn, n.mlp_bias);
      m.linear("mixer.down_proj", n.ffn, n.hidden, n.mlp_bias);
  }
}

}  // namespace

Model build_nemotron_h(const ModelConfig& c, const BuildOptions& options) {
  const NemotronH n = read_nemotron_h(c);
  const std::vector<Mixer> mixers = read_mixers(c);
  const ModelFacts facts{.layers = std::ssize(mixers),
                         .max_positions = c.count_or_zero("max_position_embeddings", 4096),
                         .attention_heads = n.heads,
                         .key_value_heads = n.kv_heads};
  const CountedStack stack{.hidden = n.hidden,
                           .vocabulary = c.count({"vocab_size"}, 131072),
                           .tied = false,  // whatever the file says
                           .embedding = "model.embeddings",
                           .norm = "model.norm_f"};
  return counted_decoder(options, facts, stack, [&](ModelBuilder& m) {
    register_layers(
        m, "model.layers", std::ssize(mixers),
        [&](std::int64_t i) { return mixers[static_cast<std::size_t>(i)]; },
        [&](Mixer mixer) {
          m.rms_norm("norm", n.hidden);
          register_mixer(m, n, mixer);
        });
  });
}

}  // namespace shardplan
