// Each chunk of a stage is a network of its own for fully_shard. Its parameters are gathered by the
// first pass that needs them; backward passes reduce nothing and free nothing, so that whole
// gradients and parameters of all chunks stay until their last backward pass, which reduces them
// block by block (torch/distributed/pipelining/stage.py of PyTorch 2.11, perform_reduce_grad).
// docs/explanation/pipeline.md derives the terms.
#include "frameworks/fsdp2/stage.h"

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "frameworks/fsdp2/backward.h"
#include "frameworks/fsdp2/gathers.h"
#include "frameworks/fsdp2/states.h"
#include "lowering/packed_weights.h"
#include "lowering/pipeline/schedule.h"
#include "trainers/description.h"

namespace shardplan {
namespace {

/// A chunk as it is sharded, and how far its micro-batches are.
struct Chunk {
  const StageChunk& part;
  Model parameters;
  PackedWeights packed;
  Fsdp2 f;
  bool gathered = false;     ///< its parameters are, at this point
  bool accumulates = false;  ///< whole gradients exist
  std::map<const Fsdp2Unit*, Gradients> whole;

  Chunk(const StageChunk& chunk, Model of_chunk, const Plan& plan, const ModelRun& run)
      : part(chunk),
        parameters(std::move(of_chunk)),
        packed(parameters, plan.precision.compute),
        f(packed.model(), plan, run, chunk.repeats) {}
  Chunk(const Chunk&) = delete;  // members refer to others
  Chunk& operator=(const Chunk&) = delete;
};

/// What the last chunk returns of a micro-batch, where the schedule keeps it for its caller until
/// the next step (stage.py, output_chunks): the logits.
std::int64_t logits_bytes(const Model& model, const Plan& plan) {
  if (plan.trainer->drops_outputs) return 0;
  const Graph& graph = model.segments.back().graph;
  for (const Op& op : graph.ops())
    if (op.kind == OpKind::linear && graph.value(op.out).logits)
      return round_up(checked_mul(elements(graph.value(op.out).extent, sizes_of(plan, model)),
                                  size_of(plan.precision.compute)),
                      kAllocationUnit);
  return 0;
}

class Fsdp2Stage {
 public:
  Fsdp2Stage(const Model& whole, const Plan& plan, const ModelRun& run, std::int64_t rank)
      : plan_(plan),
        run_(run),
        program_(program_of(run)),
        b_(program_),
        stage_(stage_of_rank(whole, plan, rank)),
        own_(parameters_of(whole, stage_)),
        packed_(own_, plan.precision.compute),
        output_(stage_.chunks.back().last ? logits_bytes(whole, plan) : 0) {
    program_.rank = rank;
    program_.bubble_share = bubble_share(plan);
    for (const StageChunk& part : stage_.chunks) {
      Stage only = stage_;
      only.chunks = {part};
      chunks_.emplace_back(part, parameters_of(whole, only), plan, run);
    }
  }

  Program run() {
    const Fsdp2States states = fsdp2_states(packed_.model(), plan_, chunks_.front().f.units);
    add_fsdp2_states(program_, b_, plan_, run_, states, packed_);
    b_.resident(Category::other, run_.resident_shared);
    add_buffers();
    std::size_t left = chunks_.size();
    emit_schedule(
        b_, stage_schedule(plan_, stage_.index), {true, true},
        [&](std::int64_t c) { forward(chunks_[static_cast<std::size_t>(c)]); },
        [&](std::int64_t c, bool last) {
          backward(chunks_[static_cast<std::size_t>(c)]);
          if (!last) return;
          for (; left > 0; --left) reduce(chunks_[left - 1]);
          merge_outputs();
        });
    std::int64_t gradients = 0;
    for (const Chunk& chunk : chunks_)
      gradients += chunk.f.of_all([&](const Fsdp2Unit& g) { return chunk.f.gradient_bytes(g); });
    emit_fsdp2_step(b_, packed_.model(), plan_, states, gradients);
    return std::move(program_);
  }

 private:
  std::int64_t micro_batches() const { return plan_.workload.gradient_accumulation; }

  /// A buffer for each micro-batch's input and for the gradient of its output, made in the first
  /// step and kept (stage.py, _create_act_recv_info, _create_grad_recv_info).
  void add_buffers() {
    for (const Chunk& chunk : chunks_)
      for (const std::int64_t bytes :
           {input_bytes(run_, chunk.part), output_bytes(run_, chunk.part)})
        b_.resident(Category::communication_buffers, bytes, bytes > 0 ? micro_batches() : 1);
    b_.resident(Category::logits_and_loss, output_, micro_batches() - 1);
  }

  /// The caller's view of all of them is put together.
  void merge_outputs() {
    b_.transient(Category::logits_and_loss, checked_mul(output_, micro_batches()));
  }

  void forward(Chunk& chunk) {
    const std::int64_t input = input_bytes(run_, chunk.part);
    b_.free(Category::communication_buffers, input);  // which the pass takes for its own
    if (std::exchange(chunk.gathered, true)) {
      Kept hooks{chunk.f, chunk.part.repeats};
      emit_chunk_forward(b_, chunk.packed.model(), run_, plan_, chunk.part, SentOutput::kept,
                         hooks);
      if (reshards()) hooks.stop(b_);
    } else {
      StageChunk part = chunk.part;
      part.repeats = forward_repeats(chunk.f, part.repeats);
      Fsdp2Forward hooks{chunk.f, part.repeats};
      hooks.start(b_);
      emit_chunk_forward(b_, chunk.packed.model(), run_, plan_, part, SentOutput::kept, hooks);
      hooks.stop(b_);
    }
    chunk.gathered = !reshards();
  }

  void backward(Chunk& chunk) {
    const std::vector<SegmentRepeat> repeats = backward_repeats(chunk.f, chunk.part.repeats);
    Fsdp2Backward hooks(chunk.f, repeats, {false, true, std::exchange(chunk.accumulates, true)},
                        {std::exchange(chunk.gathered, true), true});
    hooks.start(b_);
    emit_chunk_backward(b_, chunk.packed.model(), run_, plan_, chunk.part, SentOutput::kept, hooks,
                        repeats);
    hooks.stop(b_);
    chunk.whole = std::move(hooks.whole);
    b_.alloc(Category::communication_buffers, input_bytes(run_, chunk.part));
  }

  /// Unit after unit: parameters go, gradients are reduced.
  void reduce(Chunk& chunk) {
    Fsdp2Backward hooks(chunk.f, chunk.part.repeats, {});
    const auto one = [&](const Fsdp2Unit& g) {
      b_.free(Category::gathered_parameters, g.unsharded);
      if (!g.apart) hooks.reduce(b_, g, chunk.whole[&g]);
    };
    one(chunk.f.units.root());
    for (const SegmentRepeat& repeat : chunk.part.repeats) {
      const Fsdp2Unit* unit = chunk.f.units.of(repeat.segment);
      if (unit == nullptr) continue;
      // The first layer's reduction frees another unit's input.
      for (const std::int64_t count : {std::min<std::int64_t>(repeat.count, 1), repeat.count - 1}) {
        if (count <= 0) continue;
        b_.begin_repeat(count);
        one(*unit);
        for (const Fsdp2Unit& experts : unit->experts) one(experts);
        b_.end_repeat();
      }
    }
    hooks.finish_reductions(b_);
  }

  /// A forward pass that finds its parameters gathered.
  struct Kept {
    const Fsdp2& f;
    const std::vector<SegmentRepeat>& repeats;
    const Fsdp2Unit* unit = nullptr;

    void enter(ProgramBuilder&, std::size_t k) { unit = f.units.of(repeats[k].segment); }
    void end(ProgramBuilder& b) const {
      if (unit != nullptr) Fsdp2::reshard(b, *unit);
    }
    void stop(ProgramBuilder& b) const {
      if (f.units.root().reshards) b.free(Category::gathered_parameters, f.units.root().unsharded);
    }
  };

  bool reshards() const { return plan_.framework.fsdp2.reshard_after_forward; }

  const Plan& plan_;
  const ModelRun& run_;
  Program program_;
  ProgramBuilder b_;
  Stage stage_;
  Model own_;  ///< parameters of all chunks
  PackedWeights packed_;
  std::int64_t output_;  ///< kept of each micro-batch
  std::deque<Chunk> chunks_;
};

}  // namespace

Program lower_fsdp2_stage(const Model& whole, const Plan& plan, const ModelRun& run,
                          std::int64_t rank) {
  return Fsdp2Stage(whole, plan, run, rank).run();
}

}  // namespace shardplan
