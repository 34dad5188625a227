// Builds a Model the way a PyTorch class does: first the modules are registered, in the order of
// the class, then the forward pass of each segment is written down as ops.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/model.h"
#include "model/peft_targets.h"
#include "plan/plan.h"

namespace shardplan {

/// What changes the network itself rather than how it is run.
struct BuildOptions {
  AttentionKind attention = AttentionKind::sdpa;
  bool flash_attn = false;  ///< fused attention is the package flash-attn's
  StateKernels state_kernels = StateKernels::torch;
  std::optional<Lora> lora;
  LossKind loss = LossKind::cross_entropy;
  KernelSet kernels = KernelSet::eager;
  KernelRequest requested;      ///< fused kernels: which of them follows from the model's type
  FusedKernels fused{};         ///< those, where the type is known
  bool widens_outputs = false;  ///< what the model returns is cast to fp32
  bool clones_outputs = false;  ///< and copied
  const FusedKernel* head_loss = nullptr;  ///< the trainer's own head and loss
  /// The trainer's log-probabilities over logits as they are, and the entropy beside them.
  const FusedKernel* token_loss = nullptr;
  EntropyKind entropy = EntropyKind::none;
  bool cached = false;  ///< for generation: a KV cache, logits of the last position, no dropout
  Quantization weights = Quantization::none;  ///< for generation: of the linear layers in blocks
  bool attention_again = false;               ///< Megatron's selective recomputation
  /// Adapters as mcore-bridge adds them to Megatron Core's layers: linears of one input share A,
  /// and every expert has a pair.
  bool joins_adapters = false;
  bool adapts_linears_alone =
      false;                        ///< adapters are an engine's own: it takes no experts for them
  ExpertTargets expert_targets;     ///< what peft takes of experts, where the type is known
  std::optional<DeepSpeedMoe> moe;  ///< with KernelSet::deepspeed_moe
  std::int64_t further_tokens = 0;  ///< that layers behind the others predict (Megatron-LM)
  ImageWork images;
  bool all_f32 = false;  ///< parameters and products in fp32: casts to it make no copies
  /// Attention is given a mask whatever the length: tokens of an image see each other.
  bool masked = false;
  /// Rotary tables have a row for each token of the batch.
  bool tables_of_batch = false;
  /// The loss is over the rows that the attention mask picks of the logits, in their own type.
  bool picks_labels = false;
  /// So many first layers are segments of their own: something is added to their results.
  std::int64_t layers_apart = 0;
  bool scalar_head = false;  ///< a value for each token in place of logits (reward models, critics)
  ModelHead head;            ///< of the class that the configuration names
  bool inside = false;       ///< of another network, whose class brings the head
  /// Parameters are counted and nothing is estimated: networks whose layers are known by their
  /// tensors only are taken too.
  bool counts_only = false;
};

/// What a plan decides about its network.
BuildOptions build_options(const Plan& plan);

/// Handles of registered modules.
struct LoraModules {
  ModuleId a_module = kNone, b_module = kNone;
  ParameterId a = kNone, b = kNone;
  std::int64_t rank = 0;
  std::int64_t a_count = 0, b_count = 0;  ///< numbers of each matrix
  double dropout = 0;
  bool joint = false;                 ///< linears of the same input share A and its result
  ModuleId magnitude_module = kNone;  ///< of DoRA
  ParameterId magnitude = kNone;
};
/// OFT: numbers that make an orthogonal matrix for each block of the input.
struct RotationModule {
  ModuleId module = kNone;
  ParameterId weight = kNone;
  std::int64_t block = 0;
};
struct LinearModule {
  ModuleId module = kNone;
  ParameterId weight = kNone, bias = kNone;
  std::int64_t in = 0, out = 0;
  bool widened = false;  ///< its weight is stored in fewer bits and widened for each product
  bool by_bitsandbytes = false;  ///< bitsandbytes multiplies by it
  std::optional<LoraModules> lora;
  bool lora_in_weight = false;  ///< the adapters' product is added to the weight, for each product
  std::optional<RotationModule> rotation;
};
struct EmbeddingModule {
  ModuleId module = kNone;
  ParameterId weight = kNone;
  std::int64_t rows = 0, width = 0;
  ParameterId tied = kNone;  ///< what a tied head multiplies by: the original of a trained copy
  std::optional<LoraModules> lora;
};
struct NormModule {
  ModuleId module = kNone;
  ParameterId weight = kNone, bias = kNone;
  std::int64_t width = 0;
};

class ModelBuilder {
 public:
  explicit ModelBuilder(BuildOptions options) : options_(std::move(options)) {}
  const BuildOptions& options() const { return options_; }
  ModelFacts& facts() { return model_.facts; }

  /// Registrations until end_repeat() happen `repeat` times; names get "prefix.{}." in front and
  /// the index counts from `start`.
  void begin_repeat(std::string_view prefix, std::int64_t repeat, std::int64_t start = 0);
  void end_repeat();

  EmbeddingModule embedding(std::string_view name, std::int64_t rows, std::int64_t width);
  LinearModule linear(std::string_view name, std::int64_t in, std::int64_t out, bool bias = false);
  /// Hugging Face's Conv1D: a linear whose weight is stored as [in, out]; always with a bias.
  LinearModule conv1d(std::string_view name, std::int64_t in, std::int64_t out);
  /// A linear whose weight is the table of `embedding` (a tied head); `bias` registers its own.
  LinearModule tied_linear(std::string_view name, const EmbeddingModule& embedding,
                           bool bias = false);
  NormModule rms_norm(std::string_view name, std::int64_t width);
  NormModule layer_norm(std::string_view name, std::int64_t width, bool bias = true);
  /// Without parameters.
  NormModule bare_norm(std::string_view name, std::int64_t width);
  /// A norm over heads whose weight has a row for each: [heads, width], no bias.
  NormModule norm_of_heads(std::string_view name, std::int64_t heads, std::int64_t width);
  /// One more tensor of a module of its own: "self_attn.sinks", "mlp.experts.gate_up_proj".
  /// `name` is the full tensor name; the module is its part before the last dot.
  ParameterId tensor(std::string_view name, std::vector<std::int64_t> shape, ParameterKind kind);
  /// Adapters of a tensor that is no module's weight (peft's target_parameters); null: it has none.
  const LoraModules* lora_of(ParameterId parameter) const;
  /// `module` uses a parameter that another one registered (a tied bias).
  void tie(ModuleId module, ParameterId parameter);
  /// A parameter that is never trained (requires_grad_(False) in the class).
  void freeze(ParameterId parameter);
  /// No nn.Linear has this weight (Parameter::no_linear).
  void set_no_linear(ParameterId weight);
  /// Linears from here on are of a class of the model's own (Parameter::derived_linear).
  void set_derived_linears(bool derived) { derived_linears_ = derived; }
  /// Whether what is registered from here on trains, if anything of the network does.
  void set_trains(bool trains) { trains_ = trains; }
  bool trains() const { return trains_; }
  /// Linears from here on are in no block, but adapted and quantized like those of blocks.
  void set_like_blocks(bool like) { like_blocks_ = like; }
  /// The module that a parameter was registered with.
  ModuleId owner(ParameterId parameter) const;

  /// Starts the next segment; the reference stays valid until the next call.
  /// `balanced`: whether pipeline stages divide its repetitions.
  Graph& begin_segment(std::string_view name, std::int64_t repeat = 1, bool checkpointable = false,
                       bool balanced = true);
  /// A tensor made by the current segment for the later ones. Returns its index in Model::shared.
  /// `f32`: in fp32 whatever the parameters' type.
  std::int32_t share(std::string_view name, Extent extent, bool f32 = false);
  /// The same of a tensor that trains: what reads it makes a gradient of it.
  std::int32_t share_trained(std::string_view name, Extent extent);
  /// A boolean mask, made where the sequence, or in generation the context, reaches `window`.
  std::int32_t share_window_mask(std::int64_t window);
  /// The current segment's own output, for use by later segments (cross attention).
  /// `passes_on`: Shared::passes_on.
  std::int32_t share_output(std::string_view name, Extent extent, bool passes_on = false);

  Model build();

 private:
  ModuleId add_module(std::string_view name);
  ParameterId add_parameter(ModuleId module, std::string name, std::vector<std::int64_t> shape,
                            ParameterKind kind, bool adapter = false);
  bool is_lora_target(std::string_view name) const;
  /// Whether a module is in a part that trains beside adapters.
  bool trains_whole(std::string_view name) const;
  /// Adapters of a module that takes `in` and returns `out` numbers a row.
  RotationModule add_rotation(std::string_view name, std::int64_t in);
  /// Adapters of the 3-D weights of experts, if they are a target.
  void adapt_experts(ParameterId parameter, std::string_view name);
  LoraModules add_lora(std::string_view name, std::int64_t in, std::int64_t out, std::string_view a,
                       std::string_view b);
  /// Those of a linear: with joins_adapters A is that of the linears it is joined with.
  LoraModules add_linear_lora(std::string_view name, std::int64_t in, std::int64_t out);
  /// A pair for every expert of a weight [E, out, in].
  LoraModules add_expert_lora(const std::string& name, const std::vector<std::int64_t>& shape);
  Parameter make_parameter(ModuleId module, std::string name, std::vector<std::int64_t> shape,
                           ParameterKind kind, bool adapter) const;
  ParameterId push(Parameter p);
  /// What trains in place of `p` where peft wraps so many letters of its module's name.
  Parameter trained_copy(Parameter p, std::size_t saved) const;
  /// What peft wraps of the module that a parameter of this name belongs to: so many letters of
  /// it. Nothing for most.
  std::optional<std::size_t> saved_part(std::string_view name) const;
  /// The head that takes the place of one over the vocabulary; nullopt: nothing does.
  std::optional<LinearModule> other_head(std::string_view name, std::int64_t in);
  void close_group();

  BuildOptions options_;
  Model model_;
  std::string prefix_;
  std::int64_t repeat_ = 1;
  std::int64_t start_ = 0;
  bool trains_ = true, like_blocks_ = false;
  bool derived_linears_ = false;
  std::size_t first_module_ = 0;  ///< of the current group: names repeat from group to group
  std::vector<std::pair<ParameterId, LoraModules>> adapted_;  ///< tensors with adapters
  std::map<std::string, LoraModules> joint_;  ///< of joint linears, by their whole name
  ParameterId original_ = kNone;  ///< of the parameter added last, where that is a trained copy
};

}  // namespace shardplan
