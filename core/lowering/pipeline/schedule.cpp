#include "lowering/pipeline/schedule.h"

#include "parallel/degrees.h"

namespace shardplan {

StageSchedule stage_schedule(const Plan& plan, std::int64_t stage) {
  const Parallel& p = plan.parallel;
  const std::int64_t count = plan.workload.gradient_accumulation;
  StageSchedule schedule;
  schedule.micro_batches = count;
  schedule.warmup.assign(static_cast<std::size_t>(p.virtual_pipeline), 0);
  if (p.pipeline == 1) return schedule;
  const std::int64_t after = p.pipeline - 1 - stage;
  if (p.schedule == PipelineSchedule::gpipe) {
    schedule.warmup.front() = count;
  } else if (p.virtual_pipeline == 1) {
    schedule.warmup.front() = std::min(after, count);
  } else if (p.schedule == PipelineSchedule::zbv) {
    schedule.warmup.front() = std::min(p.pipeline + after, count);
    schedule.warmup.back() = std::min(stage, count);
  } else {
    // Groups of micro-batches go through one chunk after the other.
    const std::int64_t group = interleaved_group(plan);
    const std::int64_t all =
        std::min(2 * after + (p.virtual_pipeline - 1) * group, count * p.virtual_pipeline);
    const std::int64_t round = group * p.virtual_pipeline;
    for (std::int64_t c = 0; c < p.virtual_pipeline; ++c) {
      const std::int64_t rest = all % round - c * group;
      schedule.warmup[static_cast<std::size_t>(c)] =
          all / round * group + std::clamp<std::int64_t>(rest, 0, group);
    }
  }
  return schedule;
}

double bubble_share(const Plan& plan) {
  const Parallel& p = plan.parallel;
  if (p.schedule == PipelineSchedule::zbv) return 0;
  return static_cast<double>(p.pipeline - 1) /
         static_cast<double>(plan.workload.gradient_accumulation * p.virtual_pipeline);
}

std::int64_t input_bytes(const ModelRun& run, const StageChunk& chunk) {
  if (chunk.first || chunk.repeats.empty()) return 0;
  // Whatever comes before the chunk, a block like its first or another segment, hands on as much.
  const std::size_t segment = chunk.repeats.front().segment;
  return run.segments[segment > 0 ? segment - 1 : segment].forward.output_bytes;
}

bool makes_input_gradient(const ModelRun& run, const StageChunk& chunk) {
  if (chunk.first || chunk.repeats.empty()) return true;
  const SegmentRepeat& front = chunk.repeats.front();
  const SegmentRun& s = run.segments[front.segment];
  const LayerTapes& tapes = s.first && front.begins ? *s.first : s;
  return tapes.backward.input_gradient_slot != kNoSlot;
}

std::int64_t output_bytes(const ModelRun& run, const StageChunk& chunk) {
  if (chunk.last || chunk.repeats.empty()) return 0;
  return run.segments[chunk.repeats.back().segment].forward.output_bytes;
}

void emit_send(ProgramBuilder& b, const Plan& plan, std::int64_t bytes, std::string_view what) {
  if (bytes == 0) return;
  const bool beside = plan.parallel.has_chunks();
  b.exchange(Collective::send, Group::pipeline, bytes, what, beside);
  if (!beside) b.wait(Stream::communication);
}

}  // namespace shardplan
