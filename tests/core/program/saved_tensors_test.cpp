// What the tape keeps at the end of a forward pass against what PyTorch's autograd keeps:
// tests/golden/saved_tensors.json and its kin (_sparse, _families, _liger, _adapters) were
// written by the scripts of the same names under tests/accuracy/measure/ on a CPU. Both sides round
// every tensor up to the CUDA allocator's unit, so sums are compared exactly.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <regex>
#include <set>

#include "saved_tensors_case.h"

namespace shardplan::saved_tensors_test {
namespace {

const std::vector<Json>& golden() {
  static const std::vector<Json> files{
      read_json_file(SHARDPLAN_SOURCE_DIR "/tests/golden/saved_tensors.json"),
      read_json_file(SHARDPLAN_SOURCE_DIR "/tests/golden/saved_tensors_sparse.json"),
      read_json_file(SHARDPLAN_SOURCE_DIR "/tests/golden/saved_tensors_families.json"),
      read_json_file(SHARDPLAN_SOURCE_DIR "/tests/golden/saved_tensors_images.json"),
      read_json_file(SHARDPLAN_SOURCE_DIR "/tests/golden/saved_tensors_sounds.json"),
      read_json_file(SHARDPLAN_SOURCE_DIR "/tests/golden/saved_tensors_states.json"),
      read_json_file(SHARDPLAN_SOURCE_DIR "/tests/golden/saved_tensors_liger.json"),
      read_json_file(SHARDPLAN_SOURCE_DIR "/tests/golden/saved_tensors_adapters.json")};
  return files;
}

/// Calls visit(segment, run) for every repetition of every segment.
template <typename Visit>
void run_segments(const Case& c, const Model& model, Visit&& visit) {
  const Regime regime{c.dtype, c.dtype};
  const Sizes sizes = c.sizes_for(model);
  DType input = c.dtype;
  std::vector<bool> shared_trains;
  for (const Shared& shared : model.shared) shared_trains.push_back(shared.needs_grad);
  TapeOptions options;
  options.shared_trains = &shared_trains;
  for (std::size_t index = 0; index < model.segments.size(); ++index) {
    const Segment& segment = model.segments[index];
    for (std::int64_t i = 0; i < segment.repeat; ++i) {
      TapeRun run = run_tape(model, segment, regime, sizes, input, TapeMode::keep, options);
      if (!run.output_needs_grad) {  // nor is there a gradient of it
        options.output_gets_grad = false;
        run = run_tape(model, segment, regime, sizes, input, TapeMode::keep, options);
        options.output_gets_grad = true;
      }
      input = run.output_dtype;
      options.input_needs_grad = run.output_needs_grad;
      visit(segment, run);
    }
    for (std::size_t i = 0; i < model.shared.size(); ++i)
      if (model.shared[i].is_output && static_cast<std::size_t>(model.shared[i].maker) == index)
        shared_trains[i] = shared_trains[i] && options.input_needs_grad;
  }
}

/// Allocated and not freed when the forward pass has ended, without the loss itself.
std::int64_t kept_by_tape(const Case& c, const Model& model) {
  std::int64_t kept = 0, last_output = 0;
  std::set<std::int32_t> saved;
  run_segments(c, model, [&](const Segment&, const TapeRun& run) {
    for (const TapeEvent& e : run.forward) {
      if (e.kind == TapeEvent::Kind::alloc) kept += e.bytes;
      if (e.kind == TapeEvent::Kind::free) kept -= e.bytes;
    }
    for (const auto* gone :
         {&run.named_in_model, &run.until_autocast_ends, &run.until_forward_ends})
      for (const TapeEvent& e : *gone) kept -= e.bytes;
    saved.insert(run.saved_shared.begin(), run.saved_shared.end());
    last_output = run.output_bytes;
  });
  // What the text model reads of a tower is named by the forward pass, but saved by nothing.
  // Nor does anything of frozen embeddings.
  const bool named = model.facts.image.patches > 0 || c.lora();
  for (std::size_t i = 0; named && i < model.shared.size(); ++i)
    if (model.shared[i].is_output && !saved.contains(static_cast<std::int32_t>(i)))
      kept -= c.block(elements(model.shared[i].extent, c.sizes_for(model)) * size_of(c.dtype));
  return kept - last_output;
}

/// Whether autograd makes a graph of a segment: not of a frozen tower.
bool has_graph(const Case& c, const Model& model, const Segment& wanted) {
  if (c.images().frozen == FrozenParts::nothing) return true;
  bool graph = false;
  run_segments(c, model, [&](const Segment& segment, const TapeRun& run) {
    if (&segment == &wanted) graph = run.output_needs_grad;
  });
  return graph;
}

/// Shared tensors that some operation keeps: factors of a product (the rotary tables), the additive
/// mask of a fused attention and a boolean one that fills scores. What is only added (the mask of
/// eager attention) nothing keeps.
std::int64_t kept_shared(const Case& c, const Model& model) {
  std::set<std::int32_t> saved;
  for (const Segment& segment : model.segments) {
    if (!has_graph(c, model, segment)) continue;
    for (const Input& in : segment.graph.inputs()) {
      if (in.kind != InputKind::shared) continue;
      const Extent extent = segment.graph.value(in.value).extent;
      const bool square = (extent.scale == Scale::scores && extent.shards == 1) ||
                          extent.scale == Scale::patch_square;
      for (const Op& op : segment.graph.ops()) {
        // An output is kept where it was made.
        const bool made = model.shared[static_cast<std::size_t>(in.shared)].is_output;
        const bool factor =
            !made && op.kind == OpKind::mul && (op.in[0] == in.value || op.in[1] == in.value);
        const bool table =
            op.kind == OpKind::rotary && (op.in[1] == in.value || op.in[2] == in.value);
        const bool mask = op.kind == OpKind::sdpa && (square || op.scores_bias == in.value);
        const bool filled = op.kind == OpKind::masked && op.side.per == 0 && op.in[1] == in.value;
        if (factor || table || mask || filled) saved.insert(in.shared);
      }
    }
  }
  std::int64_t bytes = 0;
  for (const std::int32_t i : saved) {
    const Shared& s = model.shared[static_cast<std::size_t>(i)];
    bytes +=
        c.block(elements(s.extent, c.sizes_for(model)) * size_of(s.f32 ? DType::f32 : c.dtype));
  }
  return bytes;
}

// Where a CPU keeps something else than a GPU, or the graph leaves something out on purpose.

/// Without a fused kernel, dropout multiplies by a noise tensor of the input's type; CUDA's keeps a
/// mask of one byte an element.
std::int64_t dropout_noise(const Case& c, const Model& model) {
  std::int64_t extra = 0;
  for (const Segment& segment : model.segments) {
    // Below the first adapters nothing takes a gradient, and nothing is kept.
    std::vector<bool> needs(segment.graph.values().size(), false);
    const auto trains = [&](ParameterId id) {
      return id != kNone && model.parameters[static_cast<std::size_t>(id)].trainable;
    };
    for (const Op& op : segment.graph.ops()) {
      const auto needed = [&](ValueId in) {
        return in != kNone && needs[static_cast<std::size_t>(in)];
      };
      const bool grad = trains(op.weight) || trains(op.bias) || needed(op.in[0]) ||
                        needed(op.in[1]) || needed(op.in[2]);
      needs[static_cast<std::size_t>(op.out)] = grad && !op.detached;
      if (op.kind != OpKind::dropout) continue;
      const std::int64_t n = elements(segment.graph.value(op.out).extent, c.sizes);
      const std::int64_t kept = c.lora() && !grad ? segment.repeat - 1 : segment.repeat;
      extra += kept * (c.block(n * size_of(c.dropped_type())) - c.block(n));
    }
  }
  return extra;
}

/// Norms of an indexer run without a graph.
bool has_graph(const Model& model, const Op& op) {
  return op.weight == kNone || model.parameters[static_cast<std::size_t>(op.weight)].name.find(
                                   ".indexer.") == std::string::npos;
}

/// LayerNorm's row statistics have the parameters' type on a CPU and are fp32 on a GPU.
std::int64_t narrow_statistics(const Case& c, const Model& model) {
  std::int64_t extra = 0;
  for (const Segment& segment : model.segments)
    for (const Op& op : segment.graph.ops())
      if (op.kind == OpKind::layer_norm && has_graph(c, model, segment) && has_graph(model, op)) {
        const std::int64_t rows = elements(op.side, c.sizes_for(model));
        extra += segment.repeat * 2 * (c.block(rows * size_of(c.dtype)) - c.block(rows * 4));
      }
  return extra;
}

/// The value whose storage `id` shares.
ValueId root_of(const Graph& graph, ValueId id) {
  for (const Op& op : graph.ops())
    if (op.out == id && op.kind == OpKind::view) return root_of(graph, op.in[0]);
  return id;
}

/// The fused kernel of a CPU takes grouped heads in fp32; CUDA's do not, and the tape follows CUDA:
/// scaled queries, repeated keys and values and the probabilities in place of what the fused kernel
/// keeps.
std::int64_t grouped_fp32(const Case& c, const Model& model) {
  if (c.dtype != DType::f32) return 0;
  std::int64_t extra = 0;
  for (const Segment& segment : model.segments)
    for (const Op& op : segment.graph.ops()) {
      if (op.kind != OpKind::sdpa || op.scores_bias != kNone) continue;
      if (op.mask.per > 0 && c.sizes.sequence >= op.mask_from) continue;
      const auto block_of = [&](Extent e) { return c.block(4 * elements(e, c.sizes)); };
      const Extent q = segment.graph.value(op.in[0]).extent;
      const Extent k = segment.graph.value(op.in[1]).extent;
      if (k.per >= q.per) continue;
      std::set<ValueId> operands;
      for (const ValueId in : op.in) operands.insert(root_of(segment.graph, in));
      std::int64_t fused = block_of(op.side);
      const auto lent = [&](ValueId value) {  // kept where it was made
        return std::any_of(segment.graph.inputs().begin(), segment.graph.inputs().end(),
                           [&](const Input& in) { return in.value == value; });
      };
      for (const ValueId in : operands)
        if (!lent(in)) fused += block_of(segment.graph.value(in).extent);
      // Its result too, where the projection after it reads a copy.
      for (const Op& next : segment.graph.ops())
        if (next.kind == OpKind::copy && next.in[0] == op.out)
          fused += block_of(segment.graph.value(op.out).extent);
      const std::int64_t apart =
          block_of(q) + 2 * block_of({q.per, k.scale}) + block_of({op.side.per, op.work.scale});
      extra += segment.repeat * (fused - apart);
    }
  return extra;
}

bool is_type(const Model& model, std::initializer_list<std::string_view> types) {
  return std::find(types.begin(), types.end(), model.facts.model_type) != types.end();
}

/// The fused kernel of a CPU gives its result the layout of the queries, heads first where they
/// were concatenated, and reading it token by token copies it; CUDA's with a mask does not.
std::int64_t masked_heads_first(const Case& c, const Model& model) {
  if (!is_type(model, {"deepseek_v32", "glm_moe_dsa"}) || c.attention != AttentionKind::sdpa)
    return 0;
  const std::int64_t width = model.facts.attention_heads * c.config("v_head_dim", 0);
  return model.facts.layers * c.block(width * c.sizes.batch * c.sizes.sequence * size_of(c.dtype));
}

/// Each loss keeps the number of labels that it counted, a scalar that the graph leaves out.
std::int64_t label_count(const Case& c, const Model& model) {
  std::int64_t losses = 0;
  for (const Op& op : model.segments.back().graph.ops())
    losses += op.kind == OpKind::nll_loss ? 1 : 0;
  // The shifted labels of one sample are a slice of one more.
  const std::int64_t row = 8 * c.sizes.sequence;
  const std::int64_t shifted = c.sizes.batch == 1 ? c.block(row + 8) - c.block(row) : 0;
  return losses * (c.block(4) + shifted);
}

/// A grouped product keeps the experts' offsets and a mask of the rows beyond the last expert;
/// gathered biases share one index.
std::int64_t expert_indices(const Case& c, const Model& model) {
  std::int64_t extra = 0;
  for (const Segment& segment : model.segments) {
    const auto& ops = segment.graph.ops();
    // A product, or its weight where adapters are added to that.
    const auto product = std::find_if(ops.begin(), ops.end(), [&](const Op& op) {
      return op.kind == OpKind::grouped_linear ||
             (op.kind == OpKind::parameter &&
              model.parameters[static_cast<std::size_t>(op.weight)].kind == ParameterKind::expert &&
              model.parameters[static_cast<std::size_t>(op.weight)].shape.size() == 3);
    });
    if (product == ops.end()) continue;
    const Parameter& weight = model.parameters[static_cast<std::size_t>(product->weight)];
    const std::int64_t experts = weight.shape[0], chosen = c.config("num_experts_per_tok", 2);
    const std::int64_t tokens = c.sizes.batch * c.sizes.sequence, rows = tokens * chosen;
    extra += segment.repeat * (c.block(4 * experts) + c.block(rows));
    if (product->in[1] != kNone) extra -= segment.repeat * c.block(8 * rows);
    // The choice of expert groups: its nodes die with the router's forward, but were seen.
    if (is_type(model, {"deepseek_v3", "deepseek_v32", "glm_moe_dsa", "glm4_moe", "glm4_moe_lite",
                        "dots1"}))
      extra += segment.repeat *
               (c.block(tokens * experts) + c.block(8 * tokens * c.config("topk_group", 4)) +
                c.block(16 * tokens * c.config("n_group", 8)));
  }
  return extra;
}

/// Attention sinks: a column of the scores that the graph leaves out, and where each row's maximum
/// stands.
std::int64_t sink_columns(const Case& c, const Model& model) {
  if (!is_type(model, {"gpt_oss"})) return 0;
  const std::int64_t rows = model.facts.attention_heads * c.sizes.batch * c.sizes.sequence;
  const std::int64_t size = size_of(c.dtype), s = c.sizes.sequence;
  return model.facts.layers *
         (c.block(8 * rows) + c.block(size * rows * (s + 1)) - c.block(size * rows * s));
}

/// Eager attention adds T5's position bias and lets it go; the tape holds it for the backward.
std::int64_t position_bias(const Case& c, const Model& model) {
  std::int64_t extra = 0;
  for (const Shared& shared : model.shared)
    if (is_type(model, {"t5", "mt5"}) && shared.name.ends_with("position bias") && shared.is_output)
      extra -= c.block(elements(shared.extent, c.sizes) * size_of(c.dtype));
  return extra;
}

/// Learned positions keep their indices, which the graph leaves out: [1, s], for OPT [b, s]. So do
/// token types that the model makes itself, and decoder inputs shifted from the labels.
std::int64_t position_indices(const Case& c, const Model& model) {
  const std::string& type = model.facts.model_type;
  if (type == "gpt2" || type == "gpt_neo") return c.block(c.sizes.sequence * 8);
  if (type == "opt") return c.block(c.sizes.batch * c.sizes.sequence * 8);
  const std::int64_t source = c.block(c.sizes.batch * c.sizes.sequence * 8);
  const std::int64_t target = c.block(c.sizes.batch * c.sizes.target * 8);
  if (type == "bert" || type == "electra") return c.block(c.sizes.sequence * 8);
  if (type == "roberta" || type == "xlm-roberta") return 2 * source;
  if (type == "bart" || type == "mbart") return source + 2 * target;
  if (type == "whisper") return target + c.block(c.sizes.target * 8);
  if (type == "t5" || type == "mt5") return target;
  if (type == "pegasus" || type == "m2m_100") return target;
  if (type == "gemma4") return source;  // a copy, with padding in the places of images
  if (type == "deberta-v2" && c.config("type_vocab_size", 0) > 0) return source;
  return 0;
}

/// Embeddings of layers are made of the words, which the graph looks up again; in fp32 the first
/// layer's norm keeps them too.
std::int64_t words_again(const Case& c, const Model& model) {
  const bool each = c.config("hidden_size_per_layer_input", 0) > 0;
  if (!is_type(model, {"gemma4_text", "gemma4"}) || !each || c.dtype != DType::f32) return 0;
  return -c.block(4 * model.facts.hidden * c.sizes.batch * c.sizes.sequence);
}

/// Gemma 3n's least magnitude of a stream is a number of the host's, which a GPU is sent each time.
std::int64_t host_bound(const Case& c, const Model& model) {
  if (!is_type(model, {"gemma3n", "gemma3n_text"})) return 0;
  std::int64_t sent = 0;
  for (const Segment& segment : model.segments)
    for (const Op& op : segment.graph.ops())
      sent += op.kind == OpKind::clamp && op.side.per > 0 &&
                      !(c.lora() && segment.name == "streams")  // of frozen embeddings
                  ? 1
                  : 0;
  return c.block(4) * (1 - sent);
}

/// Gemma 4's tower multiplies by a buffer in fp32.
std::int64_t standard_scale(const Case& c, const Model& model) {
  if (!is_type(model, {"gemma4"}) || c.dtype == DType::f32) return 0;
  const Json& tower = c.json->at("config").at("vision_config");
  const bool kept = c.images().frozen == FrozenParts::nothing && tower.value("standardize", false);
  return kept ? c.block(4 * tower.at("hidden_size").get<std::int64_t>()) : 0;
}

/// DeBERTa divides each term of its scores by a number in a tensor of the host.
std::int64_t host_scales(const Case& c, const Model& model) {
  if (!is_type(model, {"deberta-v2"})) return 0;
  std::int64_t scales = 0;
  for (const Segment& segment : model.segments)
    for (const Op& op : segment.graph.ops()) {
      const bool term = op.kind == OpKind::gather_columns && op.side.scale == Scale::square;
      if (term || op.kind == OpKind::masked) scales += segment.repeat;
    }
  return scales * c.block(2);
}

/// The class of sequences picks the last token by two indices, of which the graph has one, or the
/// logits and labels of samples that have one.
std::int64_t picked_rows(const Case& c, const Model& model) {
  std::int64_t picks = 0;
  for (const Op& op : model.segments.back().graph.ops())
    picks += (op.kind == OpKind::gather_rows || op.kind == OpKind::gather_columns) &&
                     op.side.scale == Scale::batch
                 ? 1
                 : 0;
  return picks * c.block(8 * c.sizes.batch);
}

/// logsigmoid keeps a buffer on a CPU, which is empty on a GPU.
std::int64_t sigmoid_buffer(const Case& c, const Model& model) {
  return is_type(model, {"siglip"}) ? c.block(4 * c.sizes.batch * c.sizes.batch) : 0;
}

/// Qwen 2-Audio leaves the last row of each sample's logits, labels and mask out of its loss.
std::int64_t rows_without_label(const Case& c, const Model& model) {
  if (!is_type(model, {"qwen2_audio"})) return 0;
  const std::int64_t all = c.sizes.batch * c.sizes.sequence, rows = all - c.sizes.batch;
  const std::int64_t width = model.facts.vocabulary * size_of(c.dtype);
  return c.block(rows * width) - c.block(all * width) + c.block(8 * rows) - c.block(8 * all) +
         c.block(rows) - c.block(all);
}

/// SmolVLM picks the rows of images by two indices, which the graph has as one.
std::int64_t picked_images(const Case& c, const Model& model) {
  if (!is_type(model, {"smolvlm"}) || c.images().frozen == FrozenParts::tower_and_projector)
    return 0;
  const std::int64_t rows = 8 * c.sizes.batch * model.facts.image.tokens;
  return 2 * c.block(rows) - c.block(2 * rows);
}

/// A loop over tokens begins with a state of zeros, which is kept too; what follows the last state
/// keeps only its copy in the type of products, where there is one.
std::int64_t first_and_last_state(const Case& c, const Graph& graph, const Op& op) {
  if (op.kind != OpKind::function || graph.function(op).name != "a loop over tokens") return 0;
  const std::int64_t state = c.sizes.batch * graph.value(op.in[0]).extent.per;
  const std::int64_t zeros = c.block(state * size_of(c.dtype));
  return c.dtype == DType::f32 ? zeros : zeros - c.block(4 * state);
}

/// A convolution along the sequence makes the columns too that are cut off behind it, and each
/// chunk of a delta net is given the same mask of 64 by 64 tokens.
std::int64_t states(const Case& c, const Model& model) {
  std::int64_t extra = 0;
  for (const Segment& segment : model.segments) {
    const auto& ops = segment.graph.ops();
    const bool delta =
        std::any_of(ops.begin(), ops.end(), [](const Op& op) { return op.kind == OpKind::solve; });
    for (const Op& op : ops) {
      extra += segment.repeat * first_and_last_state(c, segment.graph, op);
      if (delta && op.kind == OpKind::softplus) {
        extra += segment.repeat * c.block(64 * 64);
        // In fp32 chunks of repeated queries and keys are copies of their own; the first chunk's
        // queries read zeros, the last one's keys nobody.
        const std::int64_t heads = segment.graph.value(op.out).extent.per;
        if (c.dtype == DType::f32 && c.config("linear_num_key_heads", heads) < heads)
          extra -= segment.repeat * 2 * 64 * c.sizes.batch * heads * 4 *
                   c.config("linear_key_head_dim", 128);
      }
      if (op.kind != OpKind::linear) continue;
      const Parameter& w = model.parameters[static_cast<std::size_t>(op.weight)];
      if (w.shape.size() != 3 || w.shape[1] != 1) continue;
      const std::int64_t row = w.shape[0] * c.sizes.batch * size_of(c.dtype);
      extra += segment.repeat * (c.block(row * (c.sizes.sequence + w.shape[2] - 1)) -
                                 c.block(row * c.sizes.sequence));
    }
  }
  return extra;
}

class SavedTensors : public testing::TestWithParam<Case> {};

TEST_P(SavedTensors, AreThoseThatAutogradKeeps) {
  const Case& c = GetParam();
  std::int64_t reference = 0;
  for (const Json& group : c.json->at("storages"))
    reference += group.at(0).get<std::int64_t>() * c.block(group.at(1).get<std::int64_t>());
  const Model model = c.model();
  const std::int64_t exceptions =
      dropout_noise(c, model) + grouped_fp32(c, model) + narrow_statistics(c, model) +
      label_count(c, model) + expert_indices(c, model) + sink_columns(c, model) +
      position_bias(c, model) + position_indices(c, model) + picked_rows(c, model) +
      picked_images(c, model) + sigmoid_buffer(c, model) + rows_without_label(c, model) +
      states(c, model) + host_scales(c, model) + words_again(c, model) +
      masked_heads_first(c, model) + standard_scale(c, model) + host_bound(c, model);
  EXPECT_EQ(kept_by_tape(c, model) + kept_shared(c, model) + exceptions, reference);
}

/// What the chain leaves of a segment without a graph: its output in the place of its input.
std::int64_t change_of_chain(const Case& c, const Model& model, const Segment& segment) {
  const Graph& graph = segment.graph;
  const auto bytes = [&](ValueId value) {
    return c.block(elements(graph.value(value).extent, c.sizes_for(model)) * size_of(c.dtype));
  };
  std::int64_t change = bytes(graph.output());
  for (const Input& in : graph.inputs())
    if (in.kind == InputKind::chained) change -= bytes(in.value);
  return change;
}

/// A layer frees its input and the gradient of its output, and leaves an output and the gradient of
/// its input of the same sizes: nothing else may outlive its backward pass.
TEST_P(SavedTensors, AreGoneAfterTheBackwardPass) {
  const Case& c = GetParam();
  const Model model = c.model();
  run_segments(c, model, [&](const Segment& segment, const TapeRun& run) {
    if (!segment.checkpointable) return;
    std::int64_t net = 0;
    for (const auto* events : {&run.forward, &run.backward})
      for (const TapeEvent& e : *events) {
        if (e.kind == TapeEvent::Kind::alloc) net += e.bytes;
        if (e.kind == TapeEvent::Kind::free) net -= e.bytes;
      }
    // Adapters in the first block leave no gradient of its input.
    const bool leaves = run.input_gradient_slot != kNoSlot;
    const std::int64_t frozen = run.output_needs_grad ? 0 : change_of_chain(c, model, segment);
    EXPECT_EQ(net, c.lora() && !leaves ? -run.output_bytes : frozen) << segment.name;
  });
}

std::vector<Case> cases() {
  std::vector<Case> out;
  for (const Json& file : golden())
    for (const Json& j : file.at("cases")) out.emplace_back(j);
  return out;
}

std::string test_name(const testing::TestParamInfo<Case>& info) {
  return std::regex_replace(info.param.name, std::regex("[^A-Za-z0-9]"), "_");
}

INSTANTIATE_TEST_SUITE_P(Golden, SavedTensors, testing::ValuesIn(cases()), test_name);

/// peft's count of parameters, and bytes of what trains.
TEST(Adapters, HaveTheParametersOfPeft) {
  for (const Case& c : cases()) {
    if (!c.lora()) continue;
    const Model model = c.model();
    std::int64_t bytes = 0;
    model.for_each_distinct([&](const Parameter& p, std::int64_t repeat) {
      if (p.trainable) bytes += repeat * p.numel * size_of(p.adapter ? DType::f32 : c.dtype);
    });
    EXPECT_EQ(model.parameter_count(), c.json->at("parameters").get<std::int64_t>()) << c.name;
    EXPECT_EQ(model.trainable_count(), c.json->at("trained").get<std::int64_t>()) << c.name;
    EXPECT_EQ(bytes, c.json->at("trained_bytes").get<std::int64_t>()) << c.name;
  }
}

}  // namespace
}  // namespace shardplan::saved_tensors_test
