#include "frameworks/native/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>

#include "base/checked.h"
#include "base/diagnostic.h"

namespace shardplan {
namespace {

constexpr std::int64_t kElements = 64;     // every parameter starts at a multiple
constexpr std::int64_t kVocabulary = 128;  // rows of embedding and head
constexpr std::int64_t kClasses = 8;       // outputs of a perceptron's last layer

bool contains(std::string_view name, std::string_view part) {
  return name.find(part) != std::string_view::npos;
}

/// Projections that are one matrix in the engine have one name here, whether peft wraps them or
/// not.
std::string fused_name(std::string name) {
  constexpr std::string_view kWrapped = ".base_layer";
  if (const auto at = name.find(kWrapped); at != std::string::npos) name.erase(at, kWrapped.size());
  constexpr std::array<std::array<std::string_view, 2>, 5> kFused{{{"q_proj", "qkv"},
                                                                   {"k_proj", "qkv"},
                                                                   {"v_proj", "qkv"},
                                                                   {"gate_proj", "up"},
                                                                   {"up_proj", "up"}}};
  for (const auto& [part, whole] : kFused)
    if (const auto at = name.find(part); at != std::string::npos)
      return name.replace(at, part.size(), whole);
  return name;
}

/// Sums of the elements of tensors by their fused names, each rounded up.
class UnitSize {
 public:
  void add(const std::string& name, std::int64_t numel) {
    std::int64_t& size = sizes_[fused_name(name)];
    size = checked_add(size, numel);
  }
  std::int64_t total() const {
    std::int64_t sum = 0;
    for (const auto& [name, numel] : sizes_) sum = checked_add(sum, round_up(numel, kElements));
    return sum;
  }

 private:
  std::map<std::string, std::int64_t> sizes_;
};

[[noreturn]] void refuse(const Model& model) {
  throw InputError(
      {.key = "framework.name",
       .message = fmt::format("the native engine does not run '{}'", model.facts.model_type),
       .expected = "gpt2, llama, mistral, qwen2, qwen3, mixtral, qwen3_moe or an mlp"});
}

/// The numel of the block's parameters whose name has one of `parts`, biases and adapters left out.
std::int64_t weights(const Model& model, std::initializer_list<std::string_view> parts) {
  std::int64_t sum = 0;
  for (const Parameter& p : model.parameters)
    if (contains(p.name, "{}") && p.name.ends_with(".weight") && !p.adapter)
      for (const std::string_view part : parts)
        if (contains(p.name, part)) sum += p.numel;
  return sum;
}

NativeBlock read_block(const Model& model, std::int64_t tensor) {
  NativeBlock b;
  b.hidden = model.facts.hidden;
  b.packed = weights(model, {"attn.c_attn", "q_proj", "k_proj", "v_proj"}) / b.hidden;
  b.query_width = weights(model, {"attn.c_proj", "o_proj"}) / b.hidden;
  b.up = weights(model, {"mlp.c_fc", "gate_proj", "up_proj"}) / b.hidden;
  b.inner = weights(model, {"mlp.c_proj", "down_proj"}) / b.hidden;
  b.query_heads = model.facts.attention_heads / tensor;
  b.key_value_heads = model.facts.key_value_heads / tensor;
  b.layer_norm = model.facts.model_type == "gpt2";
  b.head_norms = weights(model, {"q_norm"}) > 0;
  return b;
}

/// Copies of each token that experts read.
std::int64_t experts_per_token(const Model& model) {
  for (const Segment& segment : model.segments)
    for (const Op& op : segment.graph.ops())
      if (op.kind == OpKind::gather_rows &&
          segment.graph.value(op.out).extent.per == op.side.per * model.facts.hidden)
        return op.side.per;
  return 0;
}

/// A block's parameters beside its experts', and its experts'. They are alike in all blocks.
void read_experts(const Model& model, NativeLayout& layout) {
  NativeBlock& b = layout.block;
  std::int64_t elements = 0;
  for (const Parameter& p : model.parameters) {
    if (contains(p.name, "{}") && contains(p.name, "mlp.gate.")) b.experts = p.shape.front();
    if (p.kind != ParameterKind::expert) continue;
    elements += round_up(p.numel, kElements);
    // [experts here, outputs, inputs]
    (contains(p.name, "gate_up_proj") ? b.up : b.inner) =
        contains(p.name, "gate_up_proj") ? p.shape[1] : p.shape[2];
  }
  if (b.experts == 0) return;
  for (const Parameter& p : model.parameters)
    if (contains(p.name, "mlp.down_proj."))
      throw InputError({.key = "model",
                        .message = "the native engine's blocks are alike, with experts in each",
                        .expected = "no decoder_sparse_step, and no mlp_only_layers"});
  b.per_token = experts_per_token(model);
  layout.experts = {elements, model.facts.layers, true};
}

/// By NativeLinear: the names of the layers that a matrix is made of.
constexpr std::array<std::array<std::string_view, 4>, 4> kLayersOf{
    {{"attn.c_attn.", "q_proj.", "k_proj.", "v_proj."},
     {"attn.c_proj.", "o_proj."},
     {"mlp.c_fc.", "gate_proj.", "up_proj."},
     {"mlp.c_proj.", "down_proj."}}};

std::size_t linear_of(const std::string& name) {
  const auto found = std::find_if(kLayersOf.begin(), kLayersOf.end(), [&](const auto& layers) {
    return std::any_of(layers.begin(), layers.end(), [&](std::string_view layer) {
      return !layer.empty() && contains(name, layer);
    });
  });
  return static_cast<std::size_t>(found - kLayersOf.begin());
}

/// Of the matrices of a block: routers are no linear layers of transformers, whatever their
/// parameters say, and experts are units of their own.
bool in_4_bits(const Parameter& p) {
  return p.quantized() && linear_of(p.name) < kLayersOf.size();
}

/// Codes of 4 bits, scales of 64 elements and, where those have a byte each, an fp32 scale for 256
/// of them and their mean.
std::int64_t quantized_bytes(std::int64_t elements, Quantization stored) {
  constexpr std::int64_t kBlock = 64, kScales = 256, kFloat = 4;
  const std::int64_t codes = round_up(ceil_div(elements, std::int64_t{2}), kElements);
  const std::int64_t blocks = ceil_div(elements, kBlock);
  if (stored == Quantization::nf4) return codes + round_up(blocks * kFloat, kElements);
  return codes + round_up(blocks, kElements) +
         round_up((ceil_div(blocks, kScales) + 1) * kFloat, kElements);
}

/// The experts here, each of whose matrices is stored in 4 bits by itself.
void quantize_experts(const Model& model, NativeLayout& layout) {
  std::int64_t bytes = 0;
  for (const Parameter& p : model.parameters) {
    if (p.kind != ParameterKind::expert || !p.quantized()) continue;
    const NativeLinear l = contains(p.name, "gate_up_proj") ? NativeLinear::up : NativeLinear::down;
    const std::int64_t here = p.shape.front(), each = p.numel / here;
    layout.block.adapters[static_cast<std::size_t>(l)].elements = each;
    bytes = checked_add(bytes, checked_mul(here, quantized_bytes(each, p.stored)));
  }
  if (bytes == 0) return;
  layout.experts.elements = bytes;
  layout.experts.quantized = true;
}

/// Whether a block's adapters are those of its experts' matrices, of all experts together.
bool adapts_experts(const Parameter& p) {
  return p.adapter && contains(p.name, "mlp.experts.");
}

/// The adapters of a block and of its experts, which `experts` ranks divide, and its matrices where
/// they have 4 bits. All else is frozen.
void read_adapters(const Model& model, std::int64_t experts, NativeLayout& layout) {
  NativeBlock& b = layout.block;
  UnitSize adapters, expert_adapters;
  Quantization stored = Quantization::none;
  for (const Parameter& p : model.parameters) {
    if (!contains(p.name, "{}")) continue;
    if (in_4_bits(p)) {
      stored = p.stored;
      NativeAdapters& of = b.adapters[linear_of(p.name)];
      of.elements = checked_add(of.elements, p.numel);
    }
    if (!p.adapter) continue;
    const bool beside_experts = adapts_experts(p);
    if (beside_experts) {
      expert_adapters.add(p.name, p.numel / experts);
    } else {
      adapters.add(p.name, p.numel);
    }
    NativeAdapters& of = b.adapters[linear_of(p.name)];
    if (contains(p.name, ".lora_A.")) {
      b.rank = beside_experts ? p.shape.front() / b.experts : p.shape.front();
      ++of.parts;
    } else {
      of.rows += p.shape.front();
    }
  }
  if (b.rank == 0) return;
  if (adapters.total() > 0) layout.adapters = {adapters.total(), model.facts.layers};
  if (expert_adapters.total() > 0)
    layout.expert_adapters = {expert_adapters.total(), model.facts.layers, true};
  for (NativeUnit* u : {&layout.embedding, &layout.blocks.front(), &layout.experts, &layout.head})
    u->frozen = true;
  if (stored == Quantization::none) return;
  layout.quantized = {0, model.facts.layers};
  layout.quantized.frozen = layout.quantized.quantized = true;
  for (const NativeAdapters& of : b.adapters)
    if (of.elements > 0) layout.quantized.elements += quantized_bytes(of.elements, stored);
  quantize_experts(model, layout);
}

NativeLayout decoder_layout(const Model& model, const Parallel& parallel) {
  const std::int64_t tensor = parallel.tensor;
  NativeLayout layout;
  layout.padded_vocabulary = round_up(model.facts.vocabulary, kVocabulary * tensor) / tensor;
  layout.tied = true;
  UnitSize embedding, block, head;
  bool after_blocks = false;
  for (const Parameter& p : model.parameters) {
    if (contains(p.name, "{}")) {
      if (p.kind != ParameterKind::expert && !p.adapter && !in_4_bits(p))
        block.add(p.name, p.numel);
      after_blocks = true;
      continue;
    }
    const bool table = contains(p.name, "embed_tokens") || contains(p.name, "wte");
    const bool rows_of_words = table || contains(p.name, "lm_head");
    const std::int64_t numel =
        rows_of_words ? checked_mul(layout.padded_vocabulary, p.shape.back()) : p.numel;
    if (contains(p.name, "lm_head")) layout.tied = false;
    (after_blocks ? head : embedding).add(p.name, numel);
  }
  layout.embedding.elements = embedding.total();
  layout.head.elements = head.total();
  layout.blocks = {{block.total(), model.facts.layers}};
  layout.block = read_block(model, tensor);
  read_experts(model, layout);
  read_adapters(model, parallel.expert, layout);
  layout.rotary = model.facts.model_type != "gpt2";
  layout.head_dim = layout.block.query_width / layout.block.query_heads;
  return layout;
}

NativeLayout perceptron_layout(const Model& model) {
  NativeLayout layout;
  layout.decoder = false;
  for (std::size_t i = 0; i < model.parameters.size(); i += 2) {
    const Parameter& weight = model.parameters[i];  // [outputs, inputs]; its bias comes next
    if (i == 0) layout.widths.push_back(weight.shape[1]);
    const bool last = i + 2 == model.parameters.size();
    const std::int64_t outputs = last ? round_up(weight.shape[0], kClasses) : weight.shape[0];
    const std::int64_t numel = checked_mul(outputs, weight.shape[1]);
    layout.blocks.push_back({round_up(numel, kElements) + round_up(outputs, kElements), 1});
    layout.widths.push_back(outputs);
  }
  layout.padded_vocabulary = layout.widths.back();
  return layout;
}

}  // namespace

std::vector<NativeUnit> NativeLayout::units() const {
  std::vector<NativeUnit> all = blocks;
  if (decoder) {
    all.insert(all.end(), {experts, quantized, adapters, expert_adapters});
    all.insert(all.begin(), embedding);
    all.push_back(head);
  }
  std::erase_if(all, [](const NativeUnit& u) { return u.count == 0; });
  return all;
}

std::vector<NativeUnit> NativeLayout::units_of_block() const {
  std::vector<NativeUnit> all{blocks.front(), experts, quantized, adapters, expert_adapters};
  std::erase_if(all, [](const NativeUnit& u) { return u.count == 0; });
  return all;
}

NativeLayout native_layout(const Model& model, const Parallel& parallel) {
  constexpr std::array<std::string_view, 7> kDecoders{"gpt2",  "llama",   "mistral",  "qwen2",
                                                      "qwen3", "mixtral", "qwen3_moe"};
  const std::string& type = model.facts.model_type;
  if (type == "mlp") return perceptron_layout(model);
  if (std::find(kDecoders.begin(), kDecoders.end(), type) == kDecoders.end()) refuse(model);
  return decoder_layout(model, parallel);
}

}  // namespace shardplan
