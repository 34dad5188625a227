#include "model/read_spec.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <span>

#include "base/nearest.h"
#include "json/reader.h"
#include "load/model_config.h"

namespace shardplan::validator {
namespace {

constexpr std::array<std::string_view, 7> kFamilies{"gpt2",  "llama",   "mistral",  "qwen2",
                                                    "qwen3", "mixtral", "qwen3_moe"};
constexpr std::int64_t kMostExperts = 1024;  // that a router's kernel has lanes for

/// transformers moved the rope keys: the first place that has one counts.
std::string rope_key(const ModelConfig& c, std::string_view name) {
  for (const auto* place : {"rope_parameters", "rope_scaling"})
    if (const std::string key = fmt::format("{}.{}", place, name); c.has(key)) return key;
  return std::string(name);
}

std::optional<RotaryScaling> read_scaling(const ModelConfig& c) {
  std::string type = c.text(rope_key(c, "rope_type"), "");
  if (type == "rope_type" || type.empty()) type = c.text(rope_key(c, "type"), "default");
  if (type == "default") return std::nullopt;
  RotaryScaling s;
  s.factor = c.number(rope_key(c, "factor"), 1);
  if (type == "linear") return s;
  if (type != "llama3")
    c.fail(rope_key(c, "rope_type"), fmt::format("the engine does not know rotary type '{}'", type),
           "default, linear or llama3");
  s.by_wavelength = true;
  s.low_frequency_factor = c.number(rope_key(c, "low_freq_factor"), 1);
  s.high_frequency_factor = c.number(rope_key(c, "high_freq_factor"), 4);
  s.original_positions =
      c.count({rope_key(c, "original_max_position_embeddings")}, s.original_positions);
  return s;
}

void refuse_window(const ModelConfig& c, std::int64_t fallback, std::int64_t sequence) {
  const std::int64_t window = c.nullable_count("sliding_window", fallback).value_or(0);
  if (window > 0 && sequence > window)
    c.fail("sliding_window",
           fmt::format("the engine has no sliding windows, and {} tokens pass the window of {}",
                       sequence, window),
           fmt::format("a sequence of at most {}", window));
}

DecoderSpec read_gpt2(const ModelConfig& c) {
  DecoderSpec s;
  s.hidden = c.count({"n_embd", "hidden_size"}, 768);
  s.layers = c.count({"n_layer", "num_hidden_layers"}, 12);
  s.query_heads = c.count({"n_head", "num_attention_heads"}, 12);
  c.require_divisible("n_embd", s.hidden, "n_head", s.query_heads);
  s.key_value_heads = s.query_heads;
  s.head_dim = s.hidden / s.query_heads;
  s.inner = c.count({"n_inner"}, 4 * s.hidden);
  s.vocabulary = c.count({"vocab_size"}, 50257);
  s.positions = c.count({"n_positions", "max_position_embeddings"}, 1024);
  s.norm = NormKind::layer;
  s.epsilon = static_cast<float>(c.number("layer_norm_epsilon", 1e-5));
  s.activation = Activation::gelu_tanh;
  const std::string activation = c.text("activation_function", "gelu_new");
  if (activation != "gelu_new" && activation != "gelu_pytorch_tanh")
    c.fail("activation_function", fmt::format("the engine has no '{}'", activation), "gelu_new");
  s.qkv_bias = s.output_bias = s.mlp_bias = true;
  s.tied = c.flag("tie_word_embeddings", true);
  s.scaled_init = true;
  return s;
}

struct Defaults {
  std::int64_t inner = 11008, vocabulary = 32000, positions = 2048;
  std::int64_t key_value_heads = 0, head_dim = 0;  ///< 0: as many as queries; hidden / heads
  double theta = 10000;
  double epsilon = 1e-6;
  std::int64_t hidden = 4096, layers = 32;
};

DecoderSpec read_rotary(const ModelConfig& c, const Defaults& d) {
  DecoderSpec s;
  s.hidden = c.count({"hidden_size"}, d.hidden);
  s.inner = c.count({"intermediate_size"}, d.inner);
  s.layers = c.count({"num_hidden_layers"}, d.layers);
  s.query_heads = c.count({"num_attention_heads"}, 32);
  const std::int64_t kv = d.key_value_heads > 0 ? d.key_value_heads : s.query_heads;
  s.key_value_heads = c.nullable_count("num_key_value_heads", kv).value_or(s.query_heads);
  c.require_divisible("num_attention_heads", s.query_heads, "num_key_value_heads",
                      s.key_value_heads);
  const auto fallback = d.head_dim > 0 ? std::optional(d.head_dim) : std::nullopt;
  const auto head_dim = c.nullable_count("head_dim", fallback);
  if (!head_dim) c.require_divisible("hidden_size", s.hidden, "num_attention_heads", s.query_heads);
  s.head_dim = head_dim.value_or(s.hidden / s.query_heads);
  c.require_divisible("head_dim", s.head_dim, "rotary pairs", 2);
  s.vocabulary = c.count({"vocab_size"}, d.vocabulary);
  s.positions = c.count_or_zero("max_position_embeddings", d.positions);
  s.epsilon = static_cast<float>(c.number("rms_norm_eps", d.epsilon));
  if (const std::string a = c.text("hidden_act", "silu"); a != "silu")
    c.fail("hidden_act", fmt::format("the engine has no gated '{}'", a), "silu");
  s.rotary = Rotary{c.number(rope_key(c, "rope_theta"), d.theta), read_scaling(c)};
  s.tied = c.flag("tie_word_embeddings", false);
  s.init_stddev = static_cast<float>(c.number("initializer_range", 0.02));
  return s;
}

/// What both families of sparse decoders say alike. Their configurations name the number of experts
/// in either way.
ExpertsSpec read_experts(const ModelConfig& c, std::int64_t count, std::int64_t per_token) {
  ExpertsSpec e{.count = c.count({"num_local_experts", "num_experts"}, count),
                .per_token = c.count({"num_experts_per_tok"}, per_token)};
  if (e.count > kMostExperts)
    c.fail("num_experts", fmt::format("{} experts of a layer", e.count),
           fmt::format("at most {}", kMostExperts));
  if (e.per_token > e.count)
    c.fail("num_experts_per_tok", fmt::format("{} of {} experts", e.per_token, e.count),
           "at most as many as there are");
  if (c.flag("output_router_logits", false))
    e.balance = static_cast<float>(c.number("router_aux_loss_coef", 0.001));
  return e;
}

DecoderSpec read_mixtral(const ModelConfig& c, std::int64_t sequence) {
  DecoderSpec s = read_rotary(
      c,
      {.inner = 14336, .positions = 131072, .key_value_heads = 8, .theta = 1e6, .epsilon = 1e-5});
  refuse_window(c, 0, sequence);
  if (c.number("router_jitter_noise", 0) > 0)
    c.fail("router_jitter_noise", "the engine has no such noise", "0");
  s.experts = read_experts(c, 8, 2);
  s.experts->renormalised = true;
  return s;
}

DecoderSpec read_qwen3_moe(const ModelConfig& c, std::int64_t sequence) {
  DecoderSpec s = read_rotary(c, {.vocabulary = 151936,
                                  .positions = 32768,
                                  .key_value_heads = 4,
                                  .hidden = 2048,
                                  .layers = 24});
  s.inner = c.count({"moe_intermediate_size"}, 768);
  s.qkv_bias = s.output_bias = c.flag("attention_bias", false);
  s.head_norms = true;
  if (c.flag("use_sliding_window", false)) refuse_window(c, 4096, sequence);
  if (c.count({"decoder_sparse_step"}, 1) != 1 || !c.counts("mlp_only_layers").empty())
    c.fail("mlp_only_layers", "the engine's blocks are alike, with experts in each", "none");
  s.experts = read_experts(c, 128, 8);
  s.experts->renormalised = c.flag("norm_topk_prob", false);
  return s;
}

DecoderSpec read_decoder(const ModelConfig& c, std::int64_t sequence) {
  const std::string family = c.text("model_type", "");
  DecoderSpec s;
  if (family == "gpt2") {
    s = read_gpt2(c);
  } else if (family == "llama") {
    s = read_rotary(c, {});
    s.qkv_bias = s.output_bias = c.flag("attention_bias", false);
    s.mlp_bias = c.flag("mlp_bias", false);
  } else if (family == "mistral") {
    s = read_rotary(c, {.inner = 14336, .positions = 131072, .key_value_heads = 8});
    refuse_window(c, 4096, sequence);
  } else if (family == "qwen2" || family == "qwen3") {
    const bool third = family == "qwen3";
    s = read_rotary(c, {.inner = 22016,
                        .vocabulary = 151936,
                        .positions = 32768,
                        .key_value_heads = 32,
                        .head_dim = third ? 128 : 0});
    s.qkv_bias = third ? c.flag("attention_bias", false) : true;
    s.output_bias = third && s.qkv_bias;
    s.head_norms = third;
    if (c.flag("use_sliding_window", false)) refuse_window(c, 4096, sequence);
  } else if (family == "mixtral") {
    s = read_mixtral(c, sequence);
  } else if (family == "qwen3_moe") {
    s = read_qwen3_moe(c, sequence);
  } else {
    c.fail("model_type", fmt::format("the engine cannot run '{}'", family),
           fmt::format("one of {}, or an mlp", fmt::join(kFamilies, ", ")));
  }
  s.family = family;
  if (s.positions > 0 && sequence > s.positions)
    c.fail(family == "gpt2" ? "n_positions" : "max_position_embeddings",
           fmt::format("a sequence of {} tokens, and the model has {} positions", sequence,
                       s.positions),
           fmt::format("at most {}", s.positions));
  return s;
}

MlpSpec read_mlp(const Json& widths, const ModelContext& at) {
  MlpSpec spec;
  for (const Json& width : widths) spec.widths.push_back(width.get<std::int64_t>());
  if (spec.widths.size() < 2)
    throw InputError({.file = at.file,
                      .key = at.key + ".mlp",
                      .message = fmt::format("{} widths", spec.widths.size()),
                      .expected = "at least two"});
  return spec;
}

}  // namespace

NetworkSpec read_spec(const Json& model, const ModelContext& at, std::int64_t sequence) {
  if (model.is_object() && model.contains("mlp")) return read_mlp(model.at("mlp"), at);
  const std::optional<NamedConfig> found = find_config(model, at);
  if (!found)
    throw InputError({.file = at.file,
                      .key = at.key,
                      .message = "the engine cannot run this model",
                      .expected = "a catalogue name, a config.json or an mlp"});
  return read_decoder(load_model_config(found->config, found->file), sequence);
}

}  // namespace shardplan::validator
