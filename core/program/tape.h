// Runs one segment's graph the way eager PyTorch does and writes down every allocation.
//
// The forward pass counts references: a tensor dies when no Python name and no autograd node
// refers to it any more. The backward pass visits the nodes in reverse order: it allocates the
// gradients of a node's inputs, then lets go of the node's incoming gradient and of what it saved.
// Rules: PyTorch tools/autograd/derivatives.yaml, torch/csrc/autograd/engine.cpp and
// aten/src/ATen/autocast_mode.h.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "formats/dtype.h"
#include "formats/product_recipe.h"
#include "model/model.h"
#include "plan/mlp_tiles.h"
#include "plan/sent_modules.h"
#include "program/category.h"
#include "program/kernel.h"
#include "program/stream.h"

namespace shardplan {

/// The element types of a segment's run.
struct Regime {
  DType params = DType::f32;
  DType compute = DType::f32;   ///< other than params: torch.autocast to this type
  DType adapters = DType::f32;  ///< LoRA matrices: peft keeps them in fp32, DeepSpeed casts them
  /// What weights in fewer bits are widened to for each product; absent: `compute`.
  std::optional<DType> base;
  /// DeepSpeed's linear for stage 3 keeps its input and the weight as they come, whatever needs a
  /// gradient, and casts inside (deepspeed/runtime/zero/linear.py).
  bool zero3_linear = false;
  std::optional<DType> cache;  ///< of keys and values in a KV cache; absent: as they are computed
  /// What the linears of blocks multiply in.
  LinearRecipe linear = LinearRecipe::computed;
  /// Weights that multiply narrow are cast before the passes have them.
  bool weights_narrow = false;
  /// The forward pass is inside of torch.autocast even where parameters have the compute type
  /// (TrainerDescription::autocasts).
  bool wrapped = false;
  /// The loss is divided after it was made, so that its gradient is not one.
  bool divides_loss = false;
  bool autocast() const { return params != compute || (wrapped && compute != DType::f32); }
  DType widened() const { return base.value_or(compute); }
};

struct TapeEvent {
  enum class Kind : std::uint8_t {
    alloc,            ///< `bytes` of storage `id`
    free,             ///< the same bytes
    fetch,            ///< module `id` needs its parameters
    release,          ///< module `id` is done with them
    gradient,         ///< the gradient of parameter `id` appears, `bytes` long
    added,            ///< its node is done, and the parameter takes it: before the next node runs
    summed,           ///< the same of a sum in a tensor of its own, whose place was freed just now
    compute,          ///< kernels run: `bytes` of them, from number `id` on
    exchange,         ///< ranks exchange what TapeRun's exchange number `id` says
    wait,             ///< what was exchanged is there
    to_host,          ///< `bytes` are copied to the host; `id`: CopyWait
    to_gpu,           ///< `bytes` are copied back
    wait_for_copies,  ///< the GPU waits for copies, but for the last `bytes` that were asked for
    copies_follow,    ///< copies asked for from here on wait for what the GPU was given
    host_waits,       ///< the host reads a result: it goes on when the GPU has done all so far
    drain,            ///< what a neighbour left (TailedFree) is freed, up to place `id`
    workspace,        ///< autograd's thread asks for its library's `bytes`, in the first step alone
    autocast_ends,    ///< its copies of weights go: TapeRun::until_autocast_ends of all segments
    model_returns,    ///< to the head's forward; its names go: TapeRun::named_in_model of all
    /// Where it first stands, the compiler times kernel `id` and clears a cache with `bytes`.
    timed,
  };
  Kind kind = Kind::alloc;
  Category category = Category::activations;
  std::int32_t id = 0;
  std::int64_t bytes = 0;         ///< already rounded to the allocator's 512-byte blocks
  Stream pool = Stream::compute;  ///< alloc, free: of the caching allocator
  /// free: what else has used it, which the allocator waits for (record_stream).
  Stream used_on = Stream::compute;
  bool after_first_step = false;  ///< alloc, free: the first step leaves it out
};

/// Who waits for a copy.
enum class CopyWait : std::uint8_t {
  nobody,
  host,
  compute,  ///< what the GPU is given next
};

/// A free that the neighbour does: hooks keep a tensor while it is sent, or after it came back.
struct TailedFree {
  TapeEvent event;
  std::int64_t place = 0;  ///< among tensors that hooks saw: 0 is the last one
};

/// What a tape event says of ranks that communicate.
struct TapeExchange {
  Exchange kind = Exchange::none;
  Group group = Group::tensor;
  std::int64_t bytes = 0;  ///< of all ranks together; 0: a recomputation stops before it
  bool ahead = false;      ///< does not depend on the computation before it
};

inline constexpr std::int32_t kChainedInputSlot = -1;
inline constexpr std::int32_t kChainedGradientSlot = -2;
inline constexpr std::int32_t kNoSlot = -3;
/// Blocks of a layer's KV cache: they outlive the run, and another one frees them.
inline constexpr std::int32_t kCacheSlot = -4;
/// What the same run before has left (TapeRun::carried).
inline constexpr std::int32_t kCarriedSlot = -5;

/// Where the tables of a run of the whole network (lowering/segments.h) have the blocks and kernels
/// of one pass over a segment.
struct TapeRows {
  std::int32_t block = 0, kernel = 0;
};

struct TapeRun {
  std::vector<TapeEvent> forward;
  std::vector<TapeEvent> backward;
  DType output_dtype = DType::f32;
  bool output_needs_grad = true;
  std::int64_t output_bytes = 0;               ///< of the chained output, alive when forward ends
  std::int32_t slots = 0;                      ///< storages that the run numbers
  std::int32_t output_slot = kNoSlot;          ///< of the chained output, in `forward`
  std::int32_t input_gradient_slot = kNoSlot;  ///< of the chained input's gradient, in `backward`
  /// Compiled: bytes that end with the kernel that makes that gradient, beyond the gradient itself.
  std::int64_t gradient_operands = 0;
  /// What nothing but autocast's cache of cast weights holds: it goes when the model's forward
  /// returns, before its caller widens what it returned (TapeEvent::Kind::autocast_ends).
  std::vector<TapeEvent> until_autocast_ends;
  /// What the model's output names (Graph::name_in_output) goes when the forward pass is over.
  std::vector<TapeEvent> until_forward_ends;
  /// What frees the tensors that nodes of the graph refer to beside what they have saved: they go
  /// with the graph, when the whole backward pass is over. A compiled step's holds what it was
  /// called with.
  std::vector<TapeEvent> held;
  /// Compiled blocks of one graph: buffers that each run finds and leaves to the next one. They are
  /// allocated before the first of several in a row, and freed behind the last.
  std::vector<TapeEvent> carried;
  std::vector<std::int32_t> left;  ///< the slots of those that it leaves
  /// Under activation offloading: what the forward and the backward pass leave to neighbours, how
  /// many tensors hooks saw, and pinned bytes of the host.
  std::vector<TailedFree> forward_tail, backward_tail;
  std::int64_t hooked = 0, pinned = 0;
  /// What they may hold besides, where values are large: columns of inputs that LLM.int8() leaves
  /// out of its products. Of the widest input: the others come from norms.
  std::int64_t outliers_at_most = 0;
  std::vector<Kernel> forward_kernels;
  std::vector<Kernel> backward_kernels;  ///< those of a recomputation too
  std::vector<TapeExchange> exchanges;   ///< of both passes
  TapeRows forward_rows, backward_rows;
  /// Allocations and frees of a compiler before the first step.
  std::vector<TapeEvent> trials;
  double model_flops = 0;                  ///< of both passes, what is computed again left out
  std::vector<std::int32_t> saved_shared;  ///< indices in Model::shared that autograd keeps
  /// What the model's forward has names for (Graph::name_in_model), to be freed when it returns;
  /// and whether the chained output is one of them.
  std::vector<TapeEvent> named_in_model;
  bool names_output = false;
};

enum class TapeMode : std::uint8_t {
  keep,     ///< an ordinary forward and its backward
  discard,  ///< a checkpointed forward: keeps only its inputs; `backward` stays empty
  redo,     ///< the recomputation and its backward, both in `backward`
  infer,    ///< a forward without autograd; frees its chained input
};

/// Sizes of PyTorch's allocation unit: every tensor takes a multiple of it.
inline constexpr std::int64_t kAllocationUnit = 512;

/// The function that checkpoints a segment.
enum class CheckpointFunction : std::uint8_t {
  /// torch.utils.checkpoint without reentrance: the recomputation stops at the last tensor that is
  /// saved; its result and the gradient of that go as soon as nothing needs them.
  torch,
  /// megatron/core/tensor_parallel/random.py and deepspeed/runtime/activation_checkpointing: a pass
  /// of autograd inside another. All of the segment is computed again, and until its backward pass
  /// is over the function holds the result and its gradient.
  megatron,
  deepspeed,
};

/// Where a checkpointed segment keeps its input between the passes.
struct SavedInput {
  CheckpointFunction function = CheckpointFunction::torch;
  bool divided = false;    ///< each of `ranks` keeps a part, which it copies out
  std::int64_t ranks = 1;  ///< of the tensor-parallel group
  bool on_host = false;
  bool beside = false;  ///< copied beside the step: nobody waits for it
};

/// What a checkpointed forward pass leaves of results, and the recomputation finds.
enum class KeptResults : std::uint8_t {
  none,
  products,  ///< those of linears, matrix products and attention
  /// The same without each n-th product that has no bias (torchtitan counts calls of aten.mm, and
  /// a linear with a bias is an aten.addmm).
  most_products,
  /// Of a compiled block: those of products that a function of autograd makes of weights in four
  /// bits. torch.utils.checkpoint in a graph tags its operations, and not those within such a
  /// function (torch/_higher_order_ops/wrap.py, tag_nodes).
  untagged,
};

/// What surrounds a run.
struct TapeOptions {
  KeptResults kept = KeptResults::none;
  std::int64_t product_share = 0;  ///< CheckpointShare::every
  /// The recomputation ends where nothing more is saved (torch.utils.checkpoint's early stop).
  bool stops_early = true;
  SavedInput saved_input;
  ActivationOffloading offloading = ActivationOffloading::none;
  MlpTiles tiles;
  SentModules sent;
  bool casts_given = false;   ///< autocast's copies of weights that train are there already
  bool last_segment = false;  ///< its backward pass follows its forward pass
  /// Products are autograd's own. Its nodes make gradients in the order of the arguments' names
  /// (tools/autograd/load_derivatives.py): without a bias the weight's before the input's
  /// (MmBackward0: mat2, self), with one after it (AddmmBackward0: mat1, mat2). Autocast casts
  /// arguments from the last to the first, so that the input's cast is undone before the weight's.
  /// Seen in histories of DDP's and DeepSpeed's allocations; on one GPU, where none was taken, it
  /// brings as many records nearer as it takes away.
  bool autograd_products = false;
  /// The framework takes a sum of a weight's gradients where autograd makes it (TapeEvent::summed).
  bool takes_sums = false;
  /// What the first product of the backward pass makes the library of products ask for.
  std::int64_t workspace = 0;
  /// Of the chained input; false for the first layer's when the embeddings are frozen.
  bool input_needs_grad = true;
  /// By Model::shared, whether it needs a gradient; nullptr: as the model says.
  const std::vector<bool>* shared_trains = nullptr;
  /// The next segment's backward leaves a gradient of the output even if this one makes no use of
  /// it: frozen embeddings whose output is told to need one, for checkpointing.
  bool output_gets_grad = true;
  bool output_is_told = false;  ///< the latter: a hook tells it (enable_input_require_grads)
  /// What a compiled model returns beside the loss goes when its gradient is made; else it is there
  /// to the end (TrainerDescription::frees_outputs).
  bool frees_returned = false;
  /// The last segment of a compiled model is a graph of its own, as Dynamo has broken the one
  /// before: what its call holds goes with it, not with the whole backward pass, and what it
  /// returns is an ordinary tensor of it (frees_returned).
  bool ends_apart = false;
  /// The last segment of a compiled model's graph ends with the head: Dynamo breaks it there, and
  /// the loss is another (ModelFacts::breaks_before_loss).
  bool loss_apart = false;
  /// Of a compiled segment behind a checkpointed one in the same graph: its chained input is among
  /// what is computed again, so that it is not kept (torch/_functorch/partitioners.py,
  /// cleanup_recompute_tags: only what a further checkpoint reads is).
  bool input_again = false;
  /// All blocks of the model are such segments, in one graph.
  bool blocks_alike = false;
  std::int64_t blocks_in_row = 0;  ///< so many, and all are computed again, each behind another
  /// Of one that is not the first behind a checkpoint: the checkpointed segment in front of it.
  /// What fuses may be one chain from that one's input on (compiled/partition.h, ChainInFront).
  const Segment* checkpointed = nullptr;
  /// Of a compiled segment in front of a checkpointed one in the same graph: its output may be
  /// computed again from what it keeps, so that one of both is kept.
  bool output_again = false;
  /// By how much the peak that Inductor expects of a whole model's backward pass, which is where
  /// its loss is, is above what its blocks begin with: it believes that the logits, and zeros for
  /// their gradient, go there, but the caller holds them (torch/_inductor/codegen/wrapper.py,
  /// AllocateLine.should_reuse_buffer).
  std::int64_t believed_room = 0;
  /// Of compiled embeddings whose gradient is scattered by the kernel that makes it: the
  /// TapeRun::gradient_operands of the block behind, which are there beside the table's gradient.
  std::int64_t scattered_operands = 0;
  /// The graph of the whole model computes blocks again that draw random numbers.
  bool draws_again = false;
  /// The last product of that one has no tag (KeptResults::untagged): it is kept in its place.
  bool product_again = false;
  /// The exchange of a column-cut linear's input gradient runs beside the products of its weights'
  /// gradients (Megatron-LM).
  bool hides_gradient_exchange = false;
  /// Transformer Engine's modules start the kernels (Issue::module).
  bool module_calls = false;
  /// Weights are cast to fewer bits once a step and stay so beyond the tape, an input once for all
  /// linears that read it (Megatron-LM, whose modules are Transformer Engine's).
  bool casts_once = false;
  /// Of a compiled segment: adapters whose modules Dynamo checks where its forward pass begins.
  std::int32_t guards = 0;
  /// Compiled with all other segments in one piece: Dynamo traces the model's masks too.
  bool traced_whole = false;
  /// Compiled: earlier blocks of the same graph have read what this one shares with them.
  bool shared_before = false;
  /// An eager segment of a compiled model, which has traced the causal mask: attention is given
  /// one.
  bool given_mask = false;
  /// By operation, the graph that it is in where Dynamo cuts a compiled model into several
  /// (compiled/cuts.h); nullptr: it does not.
  const std::vector<std::int32_t>* graph_parts = nullptr;
  /// Those graphs end where functions are hidden from Dynamo (compiled/breaks.h).
  bool graph_breaks = false;
  /// They end at modules too, around which hooks fetch parameters.
  bool module_hooks = false;
  /// The pool of the caching allocator that a compiled pass allocates in.
  Stream pool = Stream::compute;
  /// Of the GPU: fused kernels sum gradients of parameters on each.
  std::int64_t multiprocessors = 0;
  /// Of the GPU: of its L2 cache; 0: not known.
  std::int64_t l2_cache_bytes = 0;
  /// Of the GPU: FLOP of products for each byte that its memory brings; 0: not known.
  double product_balance = 0;
  /// Parts that gathers before and reduce-scatters behind linears are cut into, each beside the
  /// product of another (Transformer Engine's userbuffers); 1: they are waited for.
  std::int64_t gather_chunks = 1, scatter_chunks = 1;
};

/// Runs `segment`. `input` is the dtype of the chained input. Slots of storages are numbered from
/// 0 in each run; the chained input and the chained output's gradient have slots of their own.
TapeRun run_tape(const Model& model, const Segment& segment, const Regime& regime,
                 const Sizes& sizes, DType input, TapeMode mode, const TapeOptions& options = {});

}  // namespace shardplan
