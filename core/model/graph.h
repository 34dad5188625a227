// The operations of one segment of a network, as eager PyTorch runs them.
//
// A graph says what is computed from what; it knows no dtype and no batch size. The tape
// (program/tape.h) runs it under a precision and decides what is allocated, what autograd keeps
// for the backward pass and what the backward pass allocates.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "kernels/description.h"
#include "model/extent.h"
#include "model/function.h"
#include "model/heads.h"
#include "plan/group.h"
#include "plan/plan.h"

namespace shardplan {

using ValueId = std::int32_t;
using ParameterId = std::int32_t;
using ModuleId = std::int32_t;
inline constexpr std::int32_t kNone = -1;

/// The operations that occur, with what autograd saves (PyTorch tools/autograd/derivatives.yaml).
enum class OpKind : std::uint8_t {
  view,         ///< transpose, reshape, slice, expand: shares storage, saves nothing
  copy,         ///< contiguous, repeat, clone: new storage, saves nothing
  fold_heads,   ///< [b, heads, ...] to [b·heads, ...] of interleaved heads: a copy, unless b is 1
  to_f32,       ///< .float(): no operation when already fp32
  to_adapter,   ///< to the type of LoRA matrices: no operation when equal
  to_like,      ///< in[0].to(in[1].dtype): no operation when equal
  to_compute,   ///< to the type of products under autocast; without it no operation
  add,          ///< two tensors; saves nothing
  scalar,       ///< times or plus a number, neg: new storage, saves nothing
  mul,          ///< two tensors; saves each factor if the other needs a gradient
  power,        ///< pow(x, c); saves x; fp32 under autocast
  mean,         ///< reduction over the last dimension; saves nothing
  sum,          ///< over one dimension; saves nothing, its gradient is a view
  deviation,    ///< standard deviation over the last dimension; saves its input and its result
  rsqrt,        ///< saves its result; fp32 under autocast
  square_root,  ///< saves its result
  tanh,         ///< saves its result
  sigmoid,      ///< saves its result
  relu,         ///< saves its result
  silu,         ///< saves its input
  exponential,  ///< saves its result; fp32 under autocast
  softplus,     ///< saves its input; fp32 under autocast
  solve,        ///< solve_triangular(in[0], in[1]): saves in[0] and its result
  gelu,         ///< fused, exact or tanh; saves its input
  softmax,      ///< saves its result; fp32 under autocast
  softmax_f32,  ///< softmax(dtype=float32): the result is fp32 whatever the input
  log_softmax,  ///< saves its result; fp32 under autocast
  log_sum_exp,  ///< over stacked tensors; saves its input and its result; fp32 under autocast
  cat,          ///< saves nothing
  dropout,      ///< saves a mask of one byte an element
  embedding,    ///< table lookup; saves the indices
  linear,       ///< addmm with a parameter; saves the input if the weight trains
  grouped_linear,  ///< torch grouped_mm over a 3-D weight: not known to autocast, runs in the
                   ///< weight's type; in[1]: gathered biases, added in place
  clamp,           ///< saves its input, and a bound that is a tensor: `side` bytes
  masked,          ///< filled, multiplied or divided by a constant tensor, or of two by one
                   ///< (torch.where): saves its `side` bytes; 0: in[1] is a shared tensor, saved
  gather_columns,  ///< entries of each row picked by int64 indices (`side`): saves both
  layer_norm,    ///< fused; saves input, mean and rstd, and a weight that is no parameter (in[1]);
                 ///< fp32 under autocast
  rms_norm,      ///< fused; saves input and rstd
  rotary,        ///< fused: in[0] turned by the tables in[1] and in[2], which it saves
  gated,         ///< fused: activation(in[0]) · in[1]; saves both
  matmul,        ///< bmm of two activations; saves both
  sdpa,          ///< fused flash attention; saves q, k, v, the output and the log-sum-exp
  gather_rows,   ///< index_select along tokens; saves the indices
  scatter_rows,  ///< index_add along tokens; saves the indices
  parameter,     ///< a parameter used as a tensor (position tables, sinks); no storage of its own
  fused_linear_loss,  ///< head and cross-entropy in chunks; saves the gradients it has made
  nll_loss,           ///< mean of the labels' log-probabilities; saves what it reads
  vocabulary_loss,    ///< cross-entropy in place of a copy of the logits, which it saves: in fp32
                      ///< (`side`), or in their own type
  communicate,        ///< an exchange among ranks (Op::exchange); saves nothing
  compare,            ///< a boolean for each element; saves nothing
  cache,              ///< keys or values appended to those of earlier tokens: new storage for all
  pool,               ///< mean over neighbours; saves its input
  batch,              ///< what the batch brings in fp32, in the type of products: needs no gradient
  place_elements,  ///< masked_scatter: in[1] takes places of in[0] in a new tensor; saves the mask
  place_rows,      ///< index_put: rows of in[1] take places of in[0]; saves a mask that says where
                   ///< (`side` bytes), or nothing
  function,        ///< several kernels that are described as a whole (Op::function)
};

/// Whose kernels the layers of a network run.
enum class KernelSet : std::uint8_t {
  eager,          ///< PyTorch's, one for each operation of the reference implementation
  megatron,       ///< Megatron-LM's and Transformer Engine's: norms, rotation, gates and loss fused
  deepspeed_moe,  ///< PyTorch's, and DeepSpeed's own layers in place of sparse ones
};

/// What ranks of a group do with a tensor each has.
enum class Exchange : std::uint8_t {
  none,
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  ring,   ///< passes it on to the next rank, until it has been everywhere
  slice,  ///< keeps its own part; sends nothing
};

/// Where an exchange leaves its result.
enum class ExchangeResult : std::uint8_t {
  in_place,  ///< in what it was given
  fresh,     ///< in a new tensor
  staged,    ///< in a new tensor, put together from one as large that the ranks wrote to
};

/// An exchange in the forward pass and its counterpart in the backward pass.
struct Communication {
  Group group = Group::tensor;
  Exchange forward = Exchange::none;
  Exchange backward = Exchange::none;
  ExchangeResult result = ExchangeResult::fresh;
  /// Elements exchanged, of all ranks together; 0: those of the larger of input and output.
  Extent payload;
};

/// Whether an operation writes its result over its first input, which nothing reads afterwards.
enum class InPlace : std::uint8_t {
  no,
  whole,  ///< x += y
  view,   ///< the same through a transposed view of x (torch CopySlices)
  part,   ///< x[1:] += y: a slice of x, which Python then assigns to itself
};

/// What an op of kind cache appends to.
enum class CachePart : std::uint8_t { keys, values };

/// A contraction that is written out: all products, and a sum that alone reads them. Which elements
/// it adds lie together in a row of so many; 0: rows are added to each other.
struct WrittenOut {
  std::int64_t row = 0;                         ///< of the sum
  std::array<std::int64_t, 2> gradients{0, 0};  ///< of those that make each factor's gradient
  /// The second factor's columns lie apart, its rows together: it is read across, and so are the
  /// products with it that are added up for the first factor's gradient.
  bool turned = false;
};

struct Op {
  OpKind kind = OpKind::view;
  std::array<ValueId, 3> in{kNone, kNone, kNone};
  ValueId out = kNone;
  ModuleId module = kNone;
  ParameterId weight = kNone;
  ParameterId bias = kNone;
  Extent work;  ///< linear, matmul, sdpa: multiply-adds of the forward pass
  /// Side results that are saved with the op. layer_norm: one fp32 row statistic (there are two);
  /// sdpa: the fp32 log-sum-exp; gather, scatter and nll_loss: the int64 indices.
  Extent side;
  /// sdpa: the additive mask that the call makes from a boolean one, in the operands' type. It is
  /// there for sequences of at least `mask_from` tokens; keys and values are then repeated to the
  /// heads of the queries before the call.
  Extent mask;
  std::int64_t mask_from = 0;
  ValueId scores_bias = kNone;  ///< sdpa: a tensor that is its additive mask; saved
  bool drops = false;           ///< sdpa: with dropout of the probabilities
  std::int64_t within = 0;      ///< sdpa: keys that each query sees; 0: as `work` says
  /// sdpa: each image, or window of one, in a call of its own; the host reads how long they are.
  bool one_by_one = false;
  bool causal = false;  ///< sdpa: without a mask the kernel leaves out half of the square
  /// sdpa: ranks whose keys and values it reads one after the other, merging what each block of
  /// them makes in fp32 (PyTorch's context_parallel); 1: all at once.
  std::int64_t key_blocks = 1;
  bool again = false;   ///< sdpa: computed again in the backward pass, from its inputs
  bool joined = false;  ///< and its third input is a part of a projection with the others
  /// linear: a convolution, whose node keeps its input whatever needs a gradient
  /// (tools/autograd/derivatives.yaml: one formula with an output_mask for all gradients).
  bool convolves = false;
  /// linear: what it saves in place of its input, which it gathers from it again in the backward
  /// pass (Megatron's sequence parallelism).
  ValueId kept = kNone;
  /// communicate; of another op: what ranks that share a layer's experts do with its result.
  Communication exchange;
  std::int32_t function = kNone;       ///< function: which of the graph's
  const FusedKernel* fused = nullptr;  ///< what runs it in place of PyTorch's or Megatron's kernel
  InPlace in_place = InPlace::no;      ///< add; whole: place_rows and masked too
  CachePart part = CachePart::keys;    ///< cache
  std::int64_t window = 0;  ///< cache: of a sliding layer, whose cache keeps the last ones; else 0
  /// False: autocast does not reach the op. It is inside a composite kernel, or its caller says
  /// which type to compute in.
  bool autocast = true;
  /// Within a function of autograd that the model's own code has: a checkpoint in a compiled graph
  /// does not tag its result.
  bool own_function = false;
  /// Its result needs no gradient, whatever it is made from (Tensor.detach()).
  bool detached = false;
  /// Its result needs one, whatever it is made from (Tensor.requires_grad_()).
  bool asked = false;
  /// scalar: the module of the embeddings that it reads returns it in their place.
  bool scales_rows = false;
  /// view: a slice of its own (x[..., :n]), whose backward pass makes zeros as large as what it is
  /// taken from (SliceBackward0); parts of one split share one such tensor.
  bool cuts = false;
  /// view: a part of torch.split, chunk or unbind, which gives a list (AOTAutograd takes none of
  /// its entries for a view).
  bool splits = false;
  /// cat: torch.stack along a new last dimension, viewed as one row.
  bool stacks = false;
  /// view: a transposition behind which gradients have the other order, so that the node copies
  /// them (a reshape of what is not contiguous).
  bool turned = false;
  /// Its first input is a transposed view, of which its kernels read a copy: backward one of the
  /// gradient of its result too.
  bool transposed = false;
  /// Over all tokens, where tensor-parallel ranks have parts of them: what it reads is put together
  /// for good, and what reads its result takes its own part.
  bool all_tokens = false;
  /// Of a feed-forward that can run over parts of the sequence, one after the other
  /// (TapeOptions::tiles).
  bool tiled = false;
  /// matmul: rows of so many experts, each by a matrix of its own; 0: of none.
  std::int64_t experts = 0;
  /// matmul: added to all experts' weights by a parametrization that peft registers in each pass.
  bool adds_factors = false;
  /// mul, sum: a contraction's.
  std::optional<WrittenOut> contraction;
  /// A conversion that the caller leaves out under autocast.
  bool only_without_autocast = false;
};

struct Value {
  Extent extent;
  bool logits = false;  ///< counted as logits_and_loss rather than activations
};

/// How a tensor from outside comes to a segment.
enum class InputKind : std::uint8_t {
  chained,  ///< the previous segment's output; the caller's frame holds it until the segment
            ///< returns
  shared,   ///< one of Model::shared
};

struct Input {
  ValueId value = kNone;
  InputKind kind = InputKind::chained;
  std::int32_t shared = kNone;  ///< index in Model::shared
};

/// A local variable of the called function: keeps `value` referenced until `until` has been made.
struct Hold {
  ValueId value = kNone;
  ValueId until = kNone;
  bool saved = false;  ///< by a graph of autograd, where the pass keeps what one saves
};

class Graph {
 public:
  ValueId chained_input(Extent extent);
  ValueId shared_input(std::int32_t shared, Extent extent);

  /// Appends an op and returns its result. The ops of composites are in model/layers.
  ValueId op(Op op, Extent out);
  /// A function over up to three inputs. Further ones join() the result.
  ValueId op(Function function, std::array<ValueId, 3> in, Extent out);
  const Function& function(const Op& op) const {
    return functions_[static_cast<std::size_t>(op.function)];
  }

  ValueId view(ValueId x, Extent extent) { return op({OpKind::view, {x, kNone, kNone}}, extent); }
  /// Op::splits.
  ValueId part(ValueId x, Extent extent) {
    Op split{OpKind::view, {x, kNone, kNone}};
    split.splits = true;
    return op(split, extent);
  }
  /// Op::cuts.
  ValueId cut(ValueId x, Extent extent) {
    Op slice{OpKind::view, {x, kNone, kNone}};
    slice.cuts = true;
    return op(slice, extent);
  }
  /// Op::turned.
  ValueId turn(ValueId x) {
    Op turn{OpKind::view, {x, kNone, kNone}};
    turn.turned = true;
    return op(turn, value(x).extent);
  }
  /// An op whose result has the extent of its first input.
  ValueId map(OpKind kind, ValueId x, ValueId second = kNone) {
    return op({kind, {x, second, kNone}}, value(x).extent);
  }

  /// factor · x, where the first factor is broadcast to the second.
  ValueId times(ValueId factor, ValueId x) {
    return op({OpKind::mul, {factor, x, kNone}}, value(x).extent);
  }

  /// Python rebinds names late, and a call's arguments live until it returns: without a hold a
  /// value dies after its last use. Where autograd keeps the value anyway this changes nothing.
  void hold(ValueId value, ValueId until) { holds_.push_back({value, until}); }
  /// The same of what a graph has saved that nothing goes back through and a name alone holds. A
  /// checkpointed forward pass saves nothing (torch/utils/checkpoint.py, _checkpoint_hook).
  void hold_saved(ValueId value, ValueId until) { holds_.push_back({value, until, true}); }
  /// A part of a `cat` beyond the inputs that an op has: it lives until `whole` is made, and takes
  /// its gradient.
  void join(ValueId part, ValueId whole) {
    hold(part, whole);
    joins_.push_back({part, whole});
  }
  void set_output(ValueId x) { output_ = x; }
  /// The caller rebinds its name for the chained input: without another reference it dies after
  /// its last use, not when the segment returns.
  void let_input_go() { lets_input_go_ = true; }
  /// The same graph in a network where modules, parameters and shared tensors begin at these.
  void renumber(ModuleId modules, ParameterId parameters, std::int32_t shared);
  /// What the network ends in.
  void set_head(const ModelHead& head) { head_ = head; }
  const ModelHead& head() const { return head_; }
  /// Which loss the head of this graph computes.
  void set_loss(LossKind loss) { loss_ = loss; }
  LossKind loss() const { return loss_; }
  void set_kernels(KernelSet kernels) { kernels_ = kernels; }
  /// Whether norms, rotation, gates and the loss are a kernel each.
  bool fuses() const { return kernels_ == KernelSet::megatron; }
  /// Fused attention is the package flash-attn's (Plan::calls_flash_attn).
  void set_flash_attn(bool calls) { flash_attn_ = calls; }
  bool flash_attn() const { return flash_attn_; }
  /// Kernels that take the place of PyTorch's operations.
  void set_fused(const FusedKernels& fused) { fused_ = fused; }
  const FusedKernels& fused() const { return fused_; }
  /// Null: PyTorch's own.
  const FusedKernel* fused(KernelName name) const { return fused_[static_cast<std::size_t>(name)]; }
  /// An op that a fused kernel runs: autocast does not know it.
  ValueId fused_op(Op op, const FusedKernel* kernel, Extent out);
  /// The model returns `x` beside the loss.
  void set_returned(ValueId x) { returned_ = x; }
  ValueId returned() const { return returned_; }
  /// What the caller makes of it in fp32; kNone: nothing.
  void set_widened(ValueId x) { widened_ = x; }
  ValueId widened() const { return widened_; }
  /// The caller casts what the model returns to fp32 (TrainerDescription::widens_outputs).
  void set_widens_outputs(bool widens) { widens_outputs_ = widens; }
  bool widens_outputs() const { return widens_outputs_; }
  /// The caller copies what the model returns, and that copy (DdpOptions::find_unused_parameters).
  void set_clones_outputs(bool clones) { clones_outputs_ = clones; }
  bool clones_outputs() const { return clones_outputs_; }
  /// Computes the head and the loss in place of the model's own; null: nothing does.
  void set_head_loss(const FusedKernel* kernel) { head_loss_ = kernel; }
  const FusedKernel* head_loss() const { return head_loss_; }
  /// Log-probabilities over the logits as they are, and the entropy beside them.
  void set_token_loss(const FusedKernel* kernel, EntropyKind entropy) {
    token_loss_ = kernel;
    entropy_ = entropy;
  }
  const FusedKernel* token_loss() const { return token_loss_; }
  EntropyKind entropy() const { return entropy_; }
  /// The loss is over rows picked of the logits, in their own type.
  void set_picks_labels(bool picks) { picks_labels_ = picks; }
  bool picks_labels() const { return picks_labels_; }
  /// Whether routers compute in fp32.
  bool routes_in_f32() const { return kernels_ == KernelSet::deepspeed_moe; }
  /// Everything made from here on belongs to the logits and the loss.
  void begin_logits() { logits_ = true; }
  /// Attention keeps its keys and values, and nothing trains (generation).
  void set_cached(bool cached) { cached_ = cached; }
  /// Megatron's selective recomputation: attention alone runs again in the backward pass.
  void set_attention_again(bool again) { attention_again_ = again; }
  bool attention_again() const { return attention_again_; }
  bool cached() const { return cached_; }
  /// The same as hold(), until the segment returns.
  void name(ValueId value) { named_.push_back(value); }
  const std::vector<ValueId>& named() const { return named_; }
  /// The model's forward, which calls the segments, has a name for `x` until its head:
  /// transformers' classes do. In training Megatron's embedding is a module that sums words and
  /// positions itself.
  void name_in_model(ValueId x) {
    if (cached_ || !fuses()) named_in_model_.push_back(x);
  }
  const std::vector<ValueId>& named_in_model() const { return named_in_model_; }
  /// In training, what the model returns has a name for `x`, which another op of this graph reads:
  /// it lives until the forward pass is over.
  void name_in_output(ValueId x) {
    if (!cached_) named_in_output_.push_back(x);
  }
  const std::vector<ValueId>& named_in_output() const { return named_in_output_; }
  /// The segment returns `x` beside its output, and its caller has a name for both until the next
  /// segment has returned. Behind the last one the model's forward returns.
  void return_beside(ValueId x) { beside_.push_back(x); }
  const std::vector<ValueId>& beside() const { return beside_; }
  /// The layer puts `x` into a dictionary for later layers, which the model's forward has. A
  /// recomputation puts its own there, and the graph that made it stays.
  void lend(ValueId x) { lent_.push_back(x); }
  const std::vector<ValueId>& lent() const { return lent_; }
  /// Whether autocast reaches the ops made from here on.
  void set_autocast(bool reaches) { autocast_ = reaches; }
  /// Whether the ops made from here on are over all tokens (Op::all_tokens).
  void set_all_tokens(bool all) { all_tokens_ = all; }
  /// Whether the ops made from here on are of a feed-forward that can be tiled (Op::tiled).
  void set_tiled(bool tiled) { tiled_ = tiled; }
  /// A function of another graph, for an op of this one.
  std::int32_t add_function(Function function);

  const Value& value(ValueId id) const { return values_[static_cast<std::size_t>(id)]; }
  const std::vector<Value>& values() const { return values_; }
  const std::vector<Op>& ops() const { return ops_; }
  const std::vector<Input>& inputs() const { return inputs_; }
  const std::vector<Hold>& holds() const { return holds_; }
  const std::vector<Hold>& joins() const { return joins_; }
  ValueId output() const { return output_; }
  bool lets_input_go() const { return lets_input_go_; }

 private:
  ValueId add_value(Extent extent);

  std::vector<Value> values_;
  std::vector<Op> ops_;
  std::vector<Function> functions_;
  std::vector<Input> inputs_;
  std::vector<Hold> holds_, joins_;
  std::vector<ValueId> named_, named_in_model_, named_in_output_, beside_, lent_;
  ValueId output_ = kNone, returned_ = kNone, widened_ = kNone;
  LossKind loss_ = LossKind::cross_entropy;
  ModelHead head_;
  KernelSet kernels_ = KernelSet::eager;
  bool flash_attn_ = false;
  FusedKernels fused_{};
  bool widens_outputs_ = false;
  bool clones_outputs_ = false;
  const FusedKernel* head_loss_ = nullptr;
  const FusedKernel* token_loss_ = nullptr;
  EntropyKind entropy_ = EntropyKind::none;
  bool logits_ = false;
  bool autocast_ = true, all_tokens_ = false, tiled_ = false;
  bool lets_input_go_ = false;
  bool picks_labels_ = false;
  bool cached_ = false;
  bool attention_again_ = false;
};

}  // namespace shardplan
