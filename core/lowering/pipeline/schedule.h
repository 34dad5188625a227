// The order in which a pipeline stage takes micro-batches, and what passes between stages.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "lowering/pipeline/stages.h"
#include "lowering/segments.h"
#include "plan/plan.h"
#include "program/program.h"

namespace shardplan {

/// How many micro-batches of each chunk a stage takes forward before its first backward. One pass
/// forward and one backward alternate after that, so that at most one more is alive.
struct StageSchedule {
  std::vector<std::int64_t> warmup;  ///< by chunk
  std::int64_t micro_batches = 1;
};

/// megatron/core/pipeline_parallel/schedules.py, get_pp_rank_microbatches and get_schedule_table;
/// deepspeed/runtime/pipe/schedule.py; torch/distributed/pipelining/schedules.py.
StageSchedule stage_schedule(const Plan& plan, std::int64_t stage);

/// The share of its own work that a stage waits for others in a step: (p-1) / (m·v); none in a V,
/// whose weights' gradients fill it (Qi et al., arXiv:2401.10241, where passes take equally long).
double bubble_share(const Plan& plan);

/// Whether a stage keeps what it has sent until the backward pass: Megatron frees all but the
/// autograd node (deallocate_output_tensor), DeepSpeed keeps it in its pipe buffers.
enum class SentOutput : std::uint8_t { freed, kept };

/// Bytes of what a chunk is given by the stage before it; 0 for the first.
std::int64_t input_bytes(const ModelRun& run, const StageChunk& chunk);
/// Whether its passes make the gradient of that. Where nothing before is trained they do not, but
/// what a stage is sent is told to need one (torch/distributed/pipelining/stage.py): it is made
/// all the same, and what blocks keep for it is not counted.
bool makes_input_gradient(const ModelRun& run, const StageChunk& chunk);
/// Bytes of what it hands on; 0 for the last.
std::int64_t output_bytes(const ModelRun& run, const StageChunk& chunk);

/// What the next stage, or the one before, is sent. Interleaved schedules send beside computation.
void emit_send(ProgramBuilder& b, const Plan& plan, std::int64_t bytes, std::string_view what);

template <typename Hooks>
void emit_chunk_forward(ProgramBuilder& b, const Model& model, const ModelRun& run,
                        const Plan& plan, const StageChunk& chunk, SentOutput sent, Hooks& hooks) {
  b.alloc_named(Category::activations, input_bytes(run, chunk), detail::kOutputName);
  emit_forward(b, model, run, chunk.repeats, hooks);
  const std::int64_t bytes = output_bytes(run, chunk);
  emit_send(b, plan, bytes, "activations to the next stage");
  if (sent == SentOutput::freed) b.free_named(Category::activations, bytes, detail::kOutputName);
}

/// `backward`: the chunk's repeats in the order of the backward pass. Where `hooks` has
/// keeps_gradient(builder), it says whether somebody keeps what was sent.
template <typename Hooks>
void emit_chunk_backward(ProgramBuilder& b, const Model& model, const ModelRun& run,
                         const Plan& plan, const StageChunk& chunk, SentOutput sent, Hooks& hooks,
                         const std::vector<SegmentRepeat>& backward) {
  const bool has_result = chunk.last || sent == SentOutput::kept;
  emit_backward(b, model, run, backward, hooks, has_result);
  const std::int64_t bytes = input_bytes(run, chunk);
  if (!makes_input_gradient(run, chunk))
    b.alloc_named(Category::activations, bytes, detail::kGradientName);
  emit_send(b, plan, bytes, "gradients to the stage before");
  if constexpr (requires { hooks.keeps_gradient(b); })
    if (bytes > 0 && hooks.keeps_gradient(b)) return;
  b.free_named(Category::activations, bytes, detail::kGradientName);
}

template <typename Hooks>
void emit_chunk_backward(ProgramBuilder& b, const Model& model, const ModelRun& run,
                         const Plan& plan, const StageChunk& chunk, SentOutput sent, Hooks& hooks) {
  emit_chunk_backward(b, model, run, plan, chunk, sent, hooks,
                      {chunk.repeats.rbegin(), chunk.repeats.rend()});
}

/// Passes of a stage that are not among their repeated neighbours.
struct PassesApart {
  bool first_forward = false;  ///< of each chunk
  bool last_backward = false;  ///< of a stage with one chunk: a phase of its own
};

/// Calls forward(chunk) and backward(chunk, last) in the order of the schedule; `last` is the
/// backward pass after which gradients are complete. The first one stands for itself: what it
/// makes, later ones add to.
template <typename Forward, typename Backward>
void emit_schedule(ProgramBuilder& b, const StageSchedule& schedule, PassesApart apart,
                   Forward&& forward, Backward&& backward) {
  const auto chunks = static_cast<std::int64_t>(schedule.warmup.size());
  const auto warmup = [&](std::int64_t c) { return schedule.warmup[static_cast<std::size_t>(c)]; };
  const auto repeat = [&](std::int64_t count, auto&& body) {
    if (count <= 0) return;
    if (count > 1) b.begin_repeat(count);
    body();
    if (count > 1) b.end_repeat();
  };
  const auto pair = [&](std::int64_t c, bool last) {
    b.begin_phase(Phase::forward);
    forward(c);
    b.end_phase(Phase::forward);
    b.begin_phase(Phase::backward);
    backward(c, last);
    b.end_phase(Phase::backward);
  };
  const bool warms_up = std::any_of(schedule.warmup.begin(), schedule.warmup.end(),
                                    [](std::int64_t count) { return count > 0; });
  if (warms_up) {
    b.begin_phase(Phase::forward);
    for (std::int64_t c = 0; c < chunks; ++c) {
      const std::int64_t first = apart.first_forward && warmup(c) > 0 ? 1 : 0;
      repeat(first, [&] { forward(c); });
      repeat(warmup(c) - first, [&] { forward(c); });
    }
    b.end_phase(Phase::forward);
  }
  for (std::int64_t c = chunks; c-- > 0;) {
    const bool ends = c == 0 && warmup(0) == 0;
    const std::int64_t count = schedule.micro_batches - warmup(c) - (ends ? 1 : 0);
    repeat(std::min<std::int64_t>(count, 1), [&] { pair(c, false); });
    repeat(count - 1, [&] { pair(c, false); });
    if (ends) pair(c, true);
  }
  if (!warms_up) return;
  b.begin_phase(Phase::backward);
  for (std::int64_t c = chunks; c-- > 0;) {
    const bool ends = c == 0 && warmup(0) > 0;
    const std::int64_t count = warmup(c) - (ends ? 1 : 0);
    repeat(std::min<std::int64_t>(count, 1), [&] { backward(c, false); });
    repeat(count - 1, [&] { backward(c, false); });
    if (!ends) continue;
    if (apart.last_backward && chunks == 1) {
      b.end_phase(Phase::backward);
      b.begin_phase(Phase::backward);
    }
    backward(c, true);
  }
  b.end_phase(Phase::backward);
}

}  // namespace shardplan
