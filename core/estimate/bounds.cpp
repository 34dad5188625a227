#include "estimate/bounds.h"

#include <algorithm>

#include "estimate/time.h"
#include "frameworks/registry.h"
#include "lowering/pipeline/schedule.h"
#include "parallel/groups.h"
#include "simulator/memory.h"
#include "timing/collective_time.h"

namespace shardplan {
namespace {

using GroupShapes = std::array<GroupShape, kGroupCount>;

/// The event of an exchange; none when a recomputation stops before it.
std::vector<Event> event_of(const TapeExchange& exchange) {
  Program program;
  ProgramBuilder b(program);
  detail::emit_exchange(b, exchange);
  return program.events;
}

void add_kernels(LeastPass& least, const Passes& passes, std::int32_t first, std::int64_t count) {
  if (least.pieces.empty() || least.pieces.back().kind != LeastPass::Piece::Kind::kernels)
    least.pieces.push_back({});
  for (std::int64_t i = 0; i < count; ++i) {
    const TimedKernel& kernel = passes.timed[static_cast<std::size_t>(first + i)];
    least.pieces.back().seconds += kernel.sequence.busy;
    least.flops += kernel.flops;
  }
}

/// Of a tape's pass, whose kernels the tables have from row `kernel` on.
LeastPass least_pass(const Passes& passes, const detail::TapePass& tape) {
  LeastPass least;
  std::int64_t live = 0;
  for (const TapeEvent& e : tape.events) {
    switch (e.kind) {
      case TapeEvent::Kind::alloc:
        live += e.bytes;
        least.rise = std::max(least.rise, live);
        break;
      case TapeEvent::Kind::free:
        live -= e.bytes;
        break;
      case TapeEvent::Kind::compute:
        add_kernels(least, passes, tape.rows.kernel + e.id, e.bytes);
        break;
      case TapeEvent::Kind::exchange:
        for (Event& event : event_of(tape.exchanges[static_cast<std::size_t>(e.id)]))
          least.pieces.push_back({LeastPass::Piece::Kind::exchange, 0, event});
        break;
      case TapeEvent::Kind::wait:
        least.pieces.push_back({LeastPass::Piece::Kind::wait, 0, {}});
        break;
      default:
        break;
    }
  }
  least.kept = live;
  return least;
}

/// The peak of one micro-batch through a network that no stages divide.
std::int64_t peak_of_passes(const Passes& passes) {
  const Model& model = passes.rank.model();
  const ModelRun& run = passes.rank.run();
  const std::vector<SegmentRepeat> forward = whole_segments(run);
  const std::vector<SegmentRepeat> backward(forward.rbegin(), forward.rend());
  Program program = program_of(run);
  ProgramBuilder b(program);
  NoHooks hooks;
  b.begin_phase(Phase::forward);
  emit_forward(b, model, run, forward, hooks);
  b.end_phase(Phase::forward);
  b.begin_phase(Phase::backward);
  emit_backward(b, model, run, backward, hooks);
  b.end_phase(Phase::backward);
  return simulate_memory(program).peak;
}

/// What one plan makes of passes: where its groups' ranks are decides what exchanges take.
class PlanBound {
 public:
  PlanBound(const Plan& plan, const Passes& passes, const LeastPasses& least,
            const TimeRates& rates)
      : plan_(plan),
        run_(passes.rank.run()),
        model_(passes.rank.model()),
        least_(least),
        rates_(rates),
        groups_(group_shapes(plan)) {
    for (const LeastSegment& s : least.segments)
      seconds_.push_back(
          {elapsed(s.forward) + elapsed(s.backward),
           s.has_first ? elapsed(s.first_forward) + elapsed(s.first_backward) : 0,
           s.has_others ? elapsed(s.others_forward) + elapsed(s.others_backward) : 0});
  }

  LeastWork whole() const {
    const auto passes = static_cast<double>(plan_.workload.gradient_accumulation);
    const Totals sum = totals(whole_segments(run_));
    return {least_.activation_bytes, passes * sum.seconds, passes * sum.flops};
  }

  LeastWork stage(std::int64_t index) const {
    const Stage stage = stage_of(model_, plan_.parallel, index);
    const StageSchedule schedule = stage_schedule(plan_, index);
    const auto passes = static_cast<double>(schedule.micro_batches);
    const bool frees = traits_of(plan_).frees_sent;
    LeastWork work;
    for (std::size_t c = 0; c < stage.chunks.size(); ++c) {
      const StageChunk& chunk = stage.chunks[c];
      const std::int64_t input = input_bytes(run_, chunk), output = output_bytes(run_, chunk);
      const Totals sum = totals(chunk.repeats);
      const std::int64_t kept = sum.kept + input - (frees ? output : 0);
      std::int64_t alive = schedule.warmup[c];
      if (c + 1 == stage.chunks.size()) {  // its first backward pass comes before any other
        alive += schedule.micro_batches > alive ? 1 : 0;
        work.activation_bytes += backward_rise(chunk);
      }
      work.activation_bytes += alive * kept;
      // Of the last micro-batch the input and its gradient are there when a step ends, and so among
      // what is resident, but go when the next one begins (frameworks/megatron/received.h).
      if (frees) work.activation_bytes -= 2 * input;
      work.seconds += passes * (sum.seconds + sending(input) + sending(output));
      work.flops += passes * sum.flops;
    }
    work.seconds *= 1 + bubble_share(plan_);
    return work;
  }

 private:
  struct SegmentSeconds {
    double each = 0, first = 0, others = 0;
  };
  struct Totals {
    double seconds = 0, flops = 0;
    std::int64_t kept = 0;
  };

  /// Kernels follow each other; what an exchange reads is there before it starts, and a wait ends
  /// with it. One that starts ahead may have been done long since.
  double elapsed(const LeastPass& pass) const {
    double compute = 0, communication = 0;
    for (const LeastPass::Piece& piece : pass.pieces) {
      if (piece.kind == LeastPass::Piece::Kind::kernels) compute += piece.seconds;
      if (piece.kind == LeastPass::Piece::Kind::wait) compute = std::max(compute, communication);
      if (piece.kind == LeastPass::Piece::Kind::exchange && !piece.exchange.ahead)
        communication = std::max(compute, communication) + seconds_of(piece.exchange);
    }
    return compute;
  }

  double seconds_of(const Event& exchange) const {
    return collective_seconds(exchange, groups_[static_cast<std::size_t>(exchange.group)],
                              plan_.cluster, rates_.links);
  }

  /// Of one micro-batch through these repeats.
  Totals totals(const std::vector<SegmentRepeat>& repeats) const {
    Totals sum;
    std::int64_t block = 0;
    for (std::size_t k = 0; k < repeats.size(); ++k) {
      if (repeats[k].count == 0) continue;
      const std::size_t i = repeats[k].segment;
      const LeastSegment& s = least_.segments[i];
      const std::int64_t first = s.has_first && detail::starts_segment(repeats, k) ? 1 : 0;
      for (const detail::Stretch& layers :
           detail::stretches(run_, run_.segments[i], block + first, repeats[k].count - first))
        add_layers(sum, i, layers);
      if (first > 0) {
        sum.seconds += seconds_[i].first;
        sum.flops += s.first_forward.flops + s.first_backward.flops;
        sum.kept += s.first_forward.kept - cached_bytes(run_.segments[i]);
      }
      block += detail::block_count(run_, repeats[k]);
    }
    return sum;
  }

  /// Autocast's copies of weights, and what the model's output names, go when the forward pass is
  /// over.
  static std::int64_t cached_bytes(const LayerTapes& layer) {
    std::int64_t bytes = 0;
    for (const auto* left : {&layer.forward.until_autocast_ends, &layer.forward.until_forward_ends})
      for (const TapeEvent& e : *left) bytes += e.bytes;
    return bytes;
  }

  void add_layers(Totals& sum, std::size_t segment, const detail::Stretch& layers) const {
    const LeastSegment& s = least_.segments[segment];
    const bool others = layers.tapes != &run_.segments[segment];
    const auto times = static_cast<double>(layers.count);
    sum.seconds += times * (others ? seconds_[segment].others : seconds_[segment].each);
    sum.flops += times * (others ? s.others_forward.flops + s.others_backward.flops
                                 : s.forward.flops + s.backward.flops);
    sum.kept += layers.count *
                ((others ? s.others_forward.kept : s.forward.kept) - cached_bytes(*layers.tapes));
  }

  /// The gradient that the last segment of a chunk is given, and what its pass has on top.
  std::int64_t backward_rise(const StageChunk& chunk) const {
    if (chunk.repeats.empty()) return 0;
    const std::size_t last = chunk.repeats.back().segment;
    return run_.segments[last].forward.output_bytes + least_.segments[last].backward.rise;
  }

  /// A stage waits for what it sends, unless the schedule sends beside computation.
  double sending(std::int64_t bytes) const {
    if (bytes == 0 || plan_.parallel.has_chunks()) return 0;
    Event e;
    e.collective = Collective::send;
    e.group = Group::pipeline;
    e.bytes = bytes;
    return seconds_of(e);
  }

  const Plan& plan_;
  const ModelRun& run_;
  const Model& model_;
  const LeastPasses& least_;
  const TimeRates& rates_;
  GroupShapes groups_;
  std::vector<SegmentSeconds> seconds_;
};

}  // namespace

LeastPasses least_passes(const Passes& passes) {
  LeastPasses all;
  for (const SegmentRun& s : passes.rank.run().segments) {
    LeastSegment least;
    least.forward = least_pass(passes, detail::forward_of(s.forward));
    least.backward = least_pass(passes, detail::backward_of(s.backward));
    least.has_others = s.others.has_value();
    if (s.others) {
      const LayerTapes& others = s.behind ? *s.behind : *s.others;  // keeps least
      least.others_forward = least_pass(passes, detail::forward_of(others.forward));
      least.others_backward = least_pass(passes, detail::backward_of(others.backward));
    }
    least.has_first = s.first.has_value();
    if (s.first) {
      least.first_forward = least_pass(passes, detail::forward_of(s.first->forward));
      least.first_backward = least_pass(passes, detail::backward_of(s.first->backward));
    }
    all.segments.push_back(std::move(least));
  }
  all.activation_bytes = peak_of_passes(passes);
  return all;
}

std::vector<LeastWork> least_work(const Plan& plan, const Passes& passes, const LeastPasses& least,
                                  const TimeRates& rates) {
  const PlanBound bound(plan, passes, least, rates);
  std::vector<LeastWork> all;
  if (plan.parallel.pipeline == 1) {
    all.push_back(bound.whole());
  } else {
    for (const std::int64_t stage : distinct_stages(passes.rank.model(), plan.parallel))
      all.push_back(bound.stage(stage));
  }
  for (LeastWork& work : all)
    if (!knows_time(plan) || work.flops <= 0) work.seconds = 0;
  return all;
}

}  // namespace shardplan
