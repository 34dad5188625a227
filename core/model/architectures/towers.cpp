#include "model/architectures/towers.h"

namespace shardplan {
namespace {

/// A convolution over patches: name.weight [out, channels, side, side] (and name.bias).
void patch_kernel(ModelBuilder& m, const std::string& name, std::int64_t out, std::int64_t channels,
                  std::int64_t side, bool bias) {
  m.tensor(name + ".weight", {out, channels, side, side}, ParameterKind::linear);
  if (bias) m.tensor(name + ".bias", {out}, ParameterKind::bias);
}

struct TowerShape {
  std::int64_t hidden, ffn, layers, channels, patch, patches;
};

TowerShape read_tower(const ModelConfig& v, const TowerDefaults& d) {
  TowerShape s{};
  s.hidden = v.count({"hidden_size"}, d.hidden);
  s.ffn = v.count({"intermediate_size"}, d.ffn);
  s.layers = v.count({"num_hidden_layers"}, d.layers);
  s.channels = v.count({"num_channels"}, 3);
  s.patch = side_of(v, "patch_size", d.patch);
  s.patches = patches_of(v, d.image, d.patch);
  return s;
}

/// SiglipMultiheadAttentionPoolingHead.
void pooling_head(ModelBuilder& m, const std::string& prefix, const TowerShape& s) {
  m.tensor(prefix + "probe", {1, 1, s.hidden}, ParameterKind::other);
  m.tensor(prefix + "attention.in_proj_weight", {3 * s.hidden, s.hidden}, ParameterKind::linear);
  m.tensor(prefix + "attention.in_proj_bias", {3 * s.hidden}, ParameterKind::bias);
  m.linear(prefix + "attention.out_proj", s.hidden, s.hidden, true);
  m.layer_norm(prefix + "layernorm", s.hidden);
  m.linear(prefix + "mlp.fc1", s.hidden, s.ffn, true);
  m.linear(prefix + "mlp.fc2", s.ffn, s.hidden, true);
}

}  // namespace

std::int64_t side_of(const ModelConfig& v, std::string_view key, std::int64_t fallback) {
  if (!v.is_list(key)) return v.count({key}, fallback);
  const std::vector<std::int64_t> sides = v.counts(key);
  if (sides.empty() || sides.front() < 1)
    v.fail(key, "not a height and a width", "a positive number or two of them");
  return sides.front();
}

std::int64_t patches_of(const ModelConfig& v, std::int64_t image, std::int64_t patch) {
  const auto last = [&](std::string_view key, std::int64_t fallback) {
    const std::vector<std::int64_t> list =
        v.is_list(key) ? v.counts(key) : std::vector<std::int64_t>{};
    return list.size() == 2 && list[1] > 0 ? list[1] : side_of(v, key, fallback);
  };
  return checked_mul(side_of(v, "image_size", image) / side_of(v, "patch_size", patch),
                     last("image_size", image) / last("patch_size", patch));
}

void pair_layers(ModelBuilder& m, const std::string& list, std::int64_t layers, std::int64_t hidden,
                 std::int64_t ffn) {
  m.begin_repeat(list, layers);
  for (const char* name : {"k_proj", "v_proj", "q_proj", "out_proj"})
    m.linear(std::string("self_attn.") + name, hidden, hidden, true);
  m.layer_norm("layer_norm1", hidden);
  m.linear("mlp.fc1", hidden, ffn, true);
  m.linear("mlp.fc2", ffn, hidden, true);
  m.layer_norm("layer_norm2", hidden);
  m.end_repeat();
}

void clip_tower(ModelBuilder& m, const std::string& prefix, const ModelConfig& v,
                const TowerDefaults& defaults) {
  const TowerShape s = read_tower(v, defaults);
  m.tensor(prefix + "embeddings.class_embedding", {s.hidden}, ParameterKind::other);
  patch_kernel(m, prefix + "embeddings.patch_embedding", s.hidden, s.channels, s.patch, false);
  m.embedding(prefix + "embeddings.position_embedding", s.patches + 1, s.hidden);
  m.layer_norm(prefix + "pre_layrnorm", s.hidden);
  pair_layers(m, prefix + "encoder.layers", s.layers, s.hidden, s.ffn);
  m.layer_norm(prefix + "post_layernorm", s.hidden);
}

void siglip_tower(ModelBuilder& m, const std::string& prefix, const ModelConfig& v,
                  const TowerDefaults& defaults) {
  const TowerShape s = read_tower(v, defaults);
  patch_kernel(m, prefix + "embeddings.patch_embedding", s.hidden, s.channels, s.patch, true);
  m.embedding(prefix + "embeddings.position_embedding", s.patches, s.hidden);
  pair_layers(m, prefix + "encoder.layers", s.layers, s.hidden, s.ffn);
  m.layer_norm(prefix + "post_layernorm", s.hidden);
  if (v.flag("vision_use_head", defaults.pooling_head)) pooling_head(m, prefix + "head.", s);
}

void pixtral_tower(ModelBuilder& m, const std::string& prefix, const ModelConfig& v,
                   const TowerDefaults& defaults) {
  const TowerShape s = read_tower(v, defaults);
  patch_kernel(m, prefix + "patch_conv", s.hidden, s.channels, s.patch, false);
  m.rms_norm(prefix + "ln_pre", s.hidden);
  m.begin_repeat(prefix + "transformer.layers", s.layers);
  m.rms_norm("attention_norm", s.hidden);
  m.linear("feed_forward.gate_proj", s.hidden, s.ffn);
  m.linear("feed_forward.up_proj", s.hidden, s.ffn);
  m.linear("feed_forward.down_proj", s.ffn, s.hidden);
  for (const char* name : {"k_proj", "v_proj", "q_proj", "o_proj"})
    m.linear(std::string("attention.") + name, s.hidden, s.hidden);
  m.rms_norm("ffn_norm", s.hidden);
  m.end_repeat();
}

void named_tower(ModelBuilder& m, const std::string& prefix, const ModelConfig& v,
                 std::string_view type, const TowerDefaults& defaults) {
  const std::string named = v.text("model_type", type);
  if (named == "clip_vision_model") return clip_tower(m, prefix, v, defaults);
  if (named == "siglip_vision_model") return siglip_tower(m, prefix, v, defaults);
  if (named == "pixtral") return pixtral_tower(m, prefix, v, defaults);
  v.fail("model_type", "the vision tower '" + named + "' cannot be counted",
         "clip_vision_model, siglip_vision_model or pixtral");
}

}  // namespace shardplan
