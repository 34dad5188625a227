// FSDP2's backward pass: parameters gathered ahead, gradients kept whole or reduced.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "frameworks/fsdp2/gathers.h"
#include "lowering/gradient_uses.h"

namespace shardplan {

/// Where a micro-batch stands in an accumulation. Without synchronisation a group's gradients stay
/// whole, in the reduction's type, and later ones are added to them (_fsdp_param.py,
/// to_accumulated_grad_if_needed); the last micro-batch reduces the sums.
struct Turn {
  bool reduces = true;
  bool first_reduction = true;  ///< makes the sharded gradients, to which later ones are added
  bool adds_whole = false;      ///< earlier micro-batches left whole gradients
};

/// What a backward pass finds gathered and leaves so: under a pipeline all that it has gathered
/// stays until the schedule is done (torch/distributed/pipelining/stage.py,
/// backward_maybe_with_nosync).
struct Gathered {
  bool before = false;
  bool after = false;
};

/// Bytes of each tensor's: the caching allocator gives back one after the other.
using Gradients = std::vector<std::int64_t>;

/// Backward: a block's parameters are gathered while the one after it computes; its gradients are
/// reduced when it is done, and the reduction's input stays until the next block's.
struct Fsdp2Backward {
  using Unit = Fsdp2Unit;

  const Fsdp2& f;
  const std::vector<SegmentRepeat>& repeats;
  Turn turn;
  Gathered gathered;
  GradientUses uses;
  bool waits_for_head = false;  ///< the head's hook is the first: its result's, the logits
  const Unit* buffer = nullptr;
  const Unit* unit = nullptr;  ///< the group of this repeat, null in the root
  bool is_block = false;
  const Unit* ahead = nullptr;      ///< that a block gathers: the next one's
  const Unit* reducing = nullptr;   ///< whose reduction input is alive
  Gradients gradients;              ///< unsharded, made by the running block
  Gradients expert_gradients;       ///< the same of its experts, which are reduced first
  std::int32_t expert_tensors = 0;  ///< how many have theirs
  bool experts_done = false;
  Gradients root_gradients;
  std::map<const Unit*, Gradients> whole;  ///< that are left, of one layer each

  Fsdp2Backward(const Fsdp2& fsdp, const std::vector<SegmentRepeat>& backward, Turn when,
                Gathered parameters = {})
      : f(fsdp),
        repeats(backward),
        turn(when),
        gathered(parameters),
        uses(fsdp.model, fsdp.run, backward) {}

  /// Before the first repeat: what the root's pre-backward hook gathers.
  void start(ProgramBuilder& b);
  void enter(ProgramBuilder& b, std::size_t k);
  void begin(ProgramBuilder& b);
  /// The head's pre-backward hook.
  void fetch(ProgramBuilder& b, ModuleId module);
  void gradient(ProgramBuilder& b, ParameterId id, std::int64_t bytes);
  void added(ProgramBuilder& b, ParameterId id, std::int64_t bytes) { uses.added(b, id, bytes); }
  void summed(ProgramBuilder& b, ParameterId id, std::int64_t bytes) { uses.summed(b, id, bytes); }
  void end(ProgramBuilder& b);
  /// Behind the last repeat: the root's own.
  void stop(ProgramBuilder& b);

  /// Reduces `unsharded`, the gradients of `g`, and frees them.
  void reduce(ProgramBuilder& b, const Unit& g, const Gradients& unsharded);
  /// Behind the last reduction of a pass: its input goes, and what copies have summed.
  void finish_reductions(ProgramBuilder& b);

 private:
  void gather_last_block(ProgramBuilder& b);
  bool gathers(const Unit& g) const { return g.reshards && !gathered.before; }
  void drop(ProgramBuilder& b, const Unit& g) const {
    if (!gathered.after) b.free(Category::gathered_parameters, g.unsharded);
  }
  void expert_gradient(ProgramBuilder& b, const Unit& experts, std::int64_t bytes);
  void keep_gradient(ProgramBuilder& b, std::int64_t bytes) const;
  void finish_experts(ProgramBuilder& b, const Unit& experts);
  void finish(ProgramBuilder& b, const Unit& g, const Gradients& made);
};

/// Repeats of a forward pass in the order of the backward pass: the first block of a segment may
/// have no reduction before it, and the last one gathers another unit ahead.
std::vector<SegmentRepeat> backward_repeats(const Fsdp2& f,
                                            const std::vector<SegmentRepeat>& forward);

}  // namespace shardplan
