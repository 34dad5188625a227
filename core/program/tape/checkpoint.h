// What a checkpoint keeps of its segment's input, and how the input is put together again.
#pragma once

#include "program/tape/parts.h"

namespace shardplan::tape {

/// The checkpoint is a pass of autograd inside another: all of the segment is computed again, and
/// its result and gradient are held until the backward pass is over.
inline bool reenters(const TapeOptions& options) {
  return options.saved_input.function != CheckpointFunction::torch;
}

/// Whether a recomputation ends at the last tensor that is saved.
inline bool stops_early(const TapeOptions& options) {
  return options.stops_early && !reenters(options);
}

/// Operations whose results a checkpoint keeps from the forward pass to the recomputation. Of
/// products without a bias each n-th is left out (torchtitan/distributed/activation_checkpoint.py,
/// SelectiveAC), and so are those of bitsandbytes, whose operators are its own. Empty: of none.
std::vector<bool> kept_results(const Model& model, const Graph& graph, const TapeOptions& options);

/// Whether something else stands for the input between the passes.
bool replaces_input(const Graph& graph, TapeMode mode, const TapeOptions& options);

/// Whether only the recomputation holds the input: it is a copy from the host, made for it.
bool recomputation_frees_input(const Graph& graph, TapeMode mode, const TapeOptions& options);

/// The chained input of a checkpointed segment. Nothing happens where it is kept as it is.
class CheckpointedInput {
 public:
  explicit CheckpointedInput(Parts& parts);

  /// Before the segment runs. DeepSpeed copies a part out (checkpointing.py,
  /// partition_activations), and sends it to the host at once; torch's save_on_cpu all of it.
  void save_part();
  /// The segment has run: the tensor that was its input gets other data. Megatron's is the part
  /// itself (split_tensor_into_1d_equal_chunks), DeepSpeed's an empty tensor.
  void replace();
  /// Before the recomputation: what stood for the input gives way to the parts of all ranks,
  /// gathered into a new tensor. DeepSpeed first gives the tensor its own part again, from the host
  /// where that is.
  void restore();

 private:
  /// torch's save_on_cpu around the checkpoint: nothing of the input stays on the GPU.
  bool leaves_whole() const { return how_.function == CheckpointFunction::torch; }
  StorageId restore_part();
  void copy(TapeEvent::Kind direction);
  void launch_part_copy();

  Parts& p_;
  const SavedInput& how_;
  bool replaced_;
  bool deepspeed_;
  ValueId input_;
  std::int64_t part_bytes_ = 0;
};

}  // namespace shardplan::tape
