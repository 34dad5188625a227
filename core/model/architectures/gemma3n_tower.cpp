// Gemma 3n's tower of images: mobilenetv5_300m_enc of timm 1.0 (timm/models/mobilenetv5.py), whose
// configuration names it and says nothing more. Its stages are data here, as in timm. Convolutions
// have no bias, but for the first.
#include <array>
#include <optional>
#include <span>

#include "model/architectures/gemma3n.h"

namespace shardplan {
namespace {

enum class TowerBlock : std::uint8_t {
  edge,      ///< EdgeResidual: a whole convolution, then one of single pixels
  inverted,  ///< UniversalInvertedResidual: convolutions by channel around a wider middle
  attends,   ///< MobileAttention: all heads share keys and values
};

/// Blocks in a row. A pair stands for blocks of both kinds in turn.
struct TowerBlocks {
  TowerBlock kind = TowerBlock::inverted;
  std::int64_t count = 1;
  std::int64_t first_kernel = 0, middle_kernel = 0;  ///< edge: of the whole; inverted; 0: none
  std::int64_t ratio = 1;                            ///< of the middle
  std::int64_t heads = 0, head_dim = 0;              ///< attends
  bool halves = false;                               ///< attends: keys and values by a convolution
  bool with_inverted = false;  ///< each is followed by an inverted one of ratio 2, without kernels
};

struct TowerStage {
  std::int64_t channels = 0;
  std::span<const TowerBlocks> blocks;
};

constexpr std::int64_t kStem = 64;
constexpr std::int64_t kOut = 2048;  ///< channels behind the fusion of the last two stages
constexpr std::int64_t kFusionRatio = 2;

constexpr std::array kFirst{
    TowerBlocks{.kind = TowerBlock::edge, .count = 3, .first_kernel = 3, .ratio = 4}};
constexpr std::array kSecond{
    TowerBlocks{.first_kernel = 3, .middle_kernel = 5, .ratio = 6},
    TowerBlocks{.first_kernel = 5, .ratio = 4}, TowerBlocks{.first_kernel = 3, .ratio = 4},
    TowerBlocks{.first_kernel = 5, .ratio = 4}, TowerBlocks{.first_kernel = 3, .ratio = 4}};
constexpr std::array kThird{TowerBlocks{.first_kernel = 5, .middle_kernel = 5, .ratio = 6},
                            TowerBlocks{.count = 7, .first_kernel = 5, .ratio = 4},
                            TowerBlocks{.ratio = 1},
                            TowerBlocks{.kind = TowerBlock::attends,
                                        .count = 14,
                                        .heads = 12,
                                        .head_dim = 64,
                                        .halves = true,
                                        .with_inverted = true}};
constexpr std::array kFourth{TowerBlocks{.first_kernel = 5, .middle_kernel = 5, .ratio = 6},
                             TowerBlocks{.kind = TowerBlock::attends,
                                         .count = 19,
                                         .heads = 16,
                                         .head_dim = 96,
                                         .with_inverted = true}};
constexpr std::array kStages{TowerStage{128, kFirst}, TowerStage{256, kSecond},
                             TowerStage{640, kThird}, TowerStage{1280, kFourth}};

/// `groups`: 1, or a group for each channel.
void convolution(ModelBuilder& m, const std::string& name, std::int64_t in, std::int64_t out,
                 std::int64_t kernel, std::int64_t groups = 1) {
  m.tensor(name + ".weight", {out, in / groups, kernel, kernel}, ParameterKind::other);
}

/// timm's ConvNormAct.
void with_norm(ModelBuilder& m, const std::string& name, std::int64_t in, std::int64_t out,
               std::int64_t kernel, std::int64_t groups = 1) {
  convolution(m, name + ".conv", in, out, kernel, groups);
  m.rms_norm(name + ".bn", out);
}

void inverted(ModelBuilder& m, const std::string& at, const TowerBlocks& b, std::int64_t in,
              std::int64_t out) {
  const std::int64_t middle = in * b.ratio;
  if (b.first_kernel > 0) with_norm(m, at + "dw_start", in, in, b.first_kernel, in);
  with_norm(m, at + "pw_exp", in, middle, 1);
  if (b.middle_kernel > 0) with_norm(m, at + "dw_mid", middle, middle, b.middle_kernel, middle);
  with_norm(m, at + "pw_proj", middle, out, 1);
}

void attends(ModelBuilder& m, const TowerBlocks& b, std::int64_t channels) {
  constexpr std::int64_t kKernel = 3;
  m.rms_norm("norm", channels);
  convolution(m, "attn.query.proj", channels, b.heads * b.head_dim, 1);
  for (const char* name : {"attn.key.", "attn.value."}) {
    const std::string at(name);
    if (b.halves) {
      convolution(m, at + "down_conv", channels, channels, kKernel, channels);
      m.rms_norm(at + "norm", channels);
    }
    convolution(m, at + "proj", channels, b.head_dim, 1);
  }
  convolution(m, "attn.output.proj", b.heads * b.head_dim, channels, 1);
}

void block(ModelBuilder& m, const TowerBlocks& b, std::int64_t in, std::int64_t out) {
  if (b.kind == TowerBlock::edge) {
    convolution(m, "conv_exp", in, in * b.ratio, b.first_kernel);
    m.rms_norm("bn1", in * b.ratio);
    convolution(m, "conv_pwl", in * b.ratio, out, 1);
    m.rms_norm("bn2", out);
    return;
  }
  if (b.kind == TowerBlock::attends)
    attends(m, b, out);
  else
    inverted(m, "", b, in, out);
  m.tensor("layer_scale.gamma", {out}, ParameterKind::other);
}

void stage(ModelBuilder& m, const std::string& list, const TowerStage& s, std::int64_t in) {
  std::int64_t index = 0;
  const auto add = [&](const TowerBlocks& b) {
    m.begin_repeat(list, 1, index);
    block(m, b, index == 0 ? in : s.channels, s.channels);
    m.end_repeat();
    ++index;
  };
  for (const TowerBlocks& b : s.blocks)
    for (std::int64_t i = 0; i < b.count; ++i) {
      add(b);
      if (b.with_inverted) add({.ratio = 2});
    }
}

}  // namespace

void declare_gemma3n_tower(ModelBuilder& m, const std::string& at, const ModelConfig& v) {
  constexpr std::string_view kKnown = "mobilenetv5_300m_enc";
  const std::string architecture = v.text("architecture", kKnown);
  if (architecture != kKnown)
    v.fail("architecture", "of timm's networks as a tower '" + architecture + "' is not described",
           std::string(kKnown));
  if (v.entries("model_args") > 0)
    v.fail("model_args", "timm's own arguments for the tower are not read", "null");
  m.tensor(at + "conv_stem.conv.weight", {kStem, 3, 3, 3}, ParameterKind::other);
  m.tensor(at + "conv_stem.conv.bias", {kStem}, ParameterKind::bias);
  m.rms_norm(at + "conv_stem.bn", kStem);
  std::int64_t in = kStem;
  for (std::size_t i = 0; i < kStages.size(); ++i) {
    stage(m, at + "blocks." + std::to_string(i), kStages[i], in);
    in = kStages[i].channels;
  }
  const std::int64_t fused = kStages[2].channels + kStages[3].channels;
  inverted(m, at + "msfa.ffn.", {.ratio = kFusionRatio}, fused, kOut);
  m.rms_norm(at + "msfa.norm", kOut);
}

}  // namespace shardplan
