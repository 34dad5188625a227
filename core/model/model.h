// A network: its parameter tensors in registration order, and the graphs of its segments in
// execution order. Parameter counts, ZeRO padding, activations and FLOPs all follow from it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/stored_format.h"
#include "model/graph.h"

namespace shardplan {

enum class ParameterKind : std::uint8_t { embedding, linear, norm, bias, expert, other };

/// One parameter tensor of a leaf module. Inside a repeated group, "{}" in `name` stands for the
/// index of the repetition.
struct Parameter {
  std::string name;
  std::vector<std::int64_t> shape;
  std::int64_t numel = 0;
  ParameterKind kind = ParameterKind::other;
  std::int32_t module = -1;  ///< index in Model::modules
  bool trainable = true;
  bool adapter = false;                      ///< a LoRA matrix, kept in fp32 by peft
  bool copy = false;                         ///< of a module that peft trains beside the original
  bool quantizable = false;                  ///< a linear layer of a block, no adapter
  Quantization stored = Quantization::none;  ///< in fewer bits
  /// But the weight of no nn.Linear: bitsandbytes, which replaces those, leaves it as it is.
  bool no_linear = false;
  /// Of a class derived from nn.Linear, which peft adapts and transformers 5 leaves in wide types
  /// (integrations/bitsandbytes.py: type(module) is nn.Linear).
  bool derived_linear = false;

  bool quantized() const { return stored != Quantization::none; }
  /// Copied to the type of products for each use (QLoRA).
  bool widened() const { return format_of(stored).widened; }
};

/// A module that owns parameters directly: what ZeRO-3 fetches at once.
struct Module {
  std::string name;
  std::vector<ParameterId> parameters;  ///< tied ones included
};

/// Consecutive parameters that are registered `repeat` times, as in a list of layers:
/// parameters[first, first + count), with indices counted from `start`.
struct ParameterGroup {
  std::int32_t first = 0;
  std::int32_t count = 0;
  std::int64_t repeat = 1;
  std::int64_t start = 0;
};

/// A part of the network that runs `repeat` times in a row, each time with parameters of its own.
struct Segment {
  std::string name;
  std::int64_t repeat = 1;
  bool checkpointable = false;  ///< a block that activation checkpointing recomputes
  Graph graph;
  bool behind = false;  ///< such a block that goes with the head: stages are not balanced over it
  /// Of a tower or its projector, which are whole on every rank and go with the embedding, however
  /// the text model is divided.
  bool of_images = false;
  /// Every GPU of a tensor-parallel group runs all of it, by transformers' code, before the layers
  /// that Megatron Core divides: a tower, and what puts its rows among the tokens.
  bool whole = false;

  /// Whether it is among the layers that pipeline stages divide.
  bool is_block() const { return checkpointable && !behind && !of_images; }
};

/// A tensor that one segment makes and many use: rotary tables, an attention mask, the encoder's
/// output. It lives from the end of its maker's forward to the end of its maker's backward.
struct Shared {
  std::string name;
  Extent extent;
  std::int32_t maker = 0;   ///< index in Model::segments
  bool needs_grad = false;  ///< the encoder's output; its gradient accumulates
  bool is_output = false;   ///< it is the maker's own output, not an extra tensor
  /// An output with readers in several segments, among which the chain goes on: its gradient begins
  /// when that of the chain is there.
  bool read_along = false;
  bool passes_on = false;  ///< an output that nothing names once its last reader has run
  bool f32 = false;        ///< in fp32 always; otherwise in the parameters' type
  /// A boolean mask of sliding layers, made once the context reaches this; 0: an ordinary tensor.
  std::int64_t mask_from = 0;
};

/// What an image is to a network that reads images.
struct ImageFacts {
  std::int64_t tokens = 0;   ///< of the sequence; 0: the network reads none, or the job has none
  std::int64_t pieces = 1;   ///< that the tower sees: the image, or parts of it beside the whole
  std::int64_t patches = 0;  ///< rows of the tower for each piece
  std::int64_t values = 0;   ///< numbers of each piece that the batch brings, in fp32
  bool has_tower = false;    ///< whatever the job brings
  bool text_alone = false;   ///< what its tower keeps of images is not described
};

/// What the configuration said and what had to be assumed, for people.
struct ModelFacts {
  std::string name;        ///< catalogue name or path
  std::string model_type;  ///< "llama", "tensors", ...
  std::string text_type;   ///< of the text model inside; else model_type
  std::int64_t hidden = 0;
  std::int64_t layers = 0;
  std::int64_t vocabulary = 0;
  std::int64_t max_positions = 0;     ///< 0: not limited by the model
  std::int64_t longest_sequence = 0;  ///< the same, stretched as its rotation says
  std::int64_t attention_heads = 0;
  std::int64_t key_value_heads = 0;
  /// Of its modules together, parameters aside: masks of all positions. The model's, not a step's.
  std::int64_t buffer_bytes = 0;
  std::int64_t cached_copies = 1;  ///< of each of them, in the cache of transformers' class
  bool encoder_decoder = false;
  ImageFacts image;
  /// Numbers in fp32 that a batch brings beside tokens: the samples of sounds.
  Extent brings;
  /// What before the encoder a job can freeze, of a network that reads no images; "": nothing.
  std::string tower;
  /// Its class says itself what of a batch needs a gradient: nobody else tells its first layers to
  /// (enable_input_require_grads).
  bool asks_itself = false;
  /// Its loss aligns labels with positions (CTC): a job says how many of them a sequence has.
  bool aligns_labels = false;
  std::int64_t usual_length = 0;  ///< of a sequence, where a job says none; 0: as of texts
  bool has_state = false;         ///< some layers have one: StateKernels says what runs them
  /// What its layers do is not described divided over ranks.
  bool undivided = false;
  /// But modules of its layers can be cut by their names, and their tokens
  /// (SplitStyle::transformers).
  bool cut_by_name = false;
  /// NeMo Automodel 0.5 has code of its own that divides its sequences: a ring that masks block by
  /// block (components/models/gemma4_moe/cp_attention.py), states that are handed from rank to rank
  /// (qwen3_5_moe/cp_linear_attn.py).
  bool own_ring = false;
  bool lends = false;  ///< layers read what others made: pipeline stages cannot be cut between them
  bool supports_sdpa = true;  ///< false: the reference implementation always runs eager attention
  /// Whether transformers 5.17 runs it on the package flash-attn 2 (_supports_flash_attn,
  /// _compatible_flash_implementations).
  bool supports_flash_attn = true;
  /// Dynamo breaks its graph in front of the loss, which is one of its own in a compiled step.
  bool breaks_before_loss = false;
  /// Experts are chosen in groups (n_group): what vLLM and SGLang have a function of its own for.
  bool grouped_experts = false;
  /// The loop over layers asks a tensor's value, at which Dynamo breaks the graph: it runs eagerly,
  /// and each layer is a graph of its own (torch/_dynamo/symbolic_convert.py).
  bool breaks_between_layers = false;
  /// Embeddings are a module with a forward of its own, such as BertEmbeddings: its caller is
  /// another frame, and another graph where Dynamo breaks between the table and what follows it.
  bool embeds_in_module = false;
  std::vector<std::string> assumed;  ///< "head_dim 128: not in the file, hidden_size / heads"
};

struct Model {
  ModelFacts facts;
  std::vector<Parameter> parameters;
  std::vector<Module> modules;
  std::vector<ParameterGroup> groups;  ///< covers `parameters`, in registration order
  std::vector<Segment> segments;       ///< in execution order; may be empty (tensor lists)
  std::vector<Shared> shared;

  std::int64_t parameter_count() const;
  std::int64_t trainable_count() const;
  std::int64_t tensor_count() const;
  /// Calls visit(parameter, repeat) for each distinct parameter, in registration order.
  template <typename Visit>
  void for_each_distinct(Visit&& visit) const {
    for (const ParameterGroup& group : groups)
      for (std::int32_t i = group.first; i < group.first + group.count; ++i)
        visit(parameters[static_cast<std::size_t>(i)], group.repeat);
  }
};

}  // namespace shardplan
