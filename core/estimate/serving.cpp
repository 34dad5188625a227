#include "estimate/serving.h"

#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "estimate/estimate.h"
#include "estimate/time.h"
#include "parallel/groups.h"
#include "serving/cache_room.h"
#include "serving/queue.h"

namespace shardplan {
namespace {

/// The engine's GPUs as a group.
Plan divided(const Plan& plan) {
  Plan own = plan;
  own.parallel.tensor = plan.workload.generation.engine->tensor_parallel;
  return own;
}

void count_sequences(ServingEstimate& s, const Plan& plan) {
  const Generation& g = plan.workload.generation;
  s.room = CacheRoom(*g.engine, plan.workload).sequences_in(s.memory.blocks);
  s.sequences = s.room;
  s.limited_by = "cache";
  if (g.engine->sequences < s.sequences) {
    s.sequences = g.engine->sequences;
    s.limited_by = "max_num_seqs";
  }
  const std::int64_t asked = plan.workload.micro_batch;
  if (asked > 0 && asked <= s.sequences) {
    s.sequences = asked;
    s.limited_by = "batch";
  }
}

/// A prompt alone, in passes of as many tokens as the engine takes at once. Its token is handed out
/// when the next pass is started (vllm/v1/engine/core.py, step_with_batch_queue).
double first_token(const ServedNetwork& network, const Plan& plan, double beside, double context) {
  const Workload& w = plan.workload;
  const RolloutEngine& engine = *w.generation.engine;
  const auto most = std::max(1.0, static_cast<double>(engine.batched_tokens) - beside);
  auto past = static_cast<double>(w.generation.shared_prefix);
  const EngineHost& host = engine.engine->host;
  double left = static_cast<double>(w.sequence_length) - past;
  double seconds = host.request_seconds + host.pass_seconds;
  while (left > 0) {
    const double tokens = std::min(left, most);
    seconds += network.time_of({beside, context, tokens, tokens, past}).seconds();
    past += tokens;
    left -= tokens;
  }
  return seconds;
}

void time_requests(ServingEstimate& s, const ServedNetwork& network, const Plan& plan) {
  const Generation& g = plan.workload.generation;
  const auto answer = static_cast<double>(std::max<std::int64_t>(g.new_tokens, 1));
  const double context = static_cast<double>(plan.workload.sequence_length) + answer / 2;
  const auto running = static_cast<double>(s.sequences);
  const SteadyState steady = steady_state(network, plan, running);
  s.pass = steady.pass;
  s.prompt_tokens = steady.prompt_tokens;
  s.token_seconds = s.pass.seconds();
  if (s.token_seconds <= 0) return;
  const auto replicas = static_cast<double>(s.replicas);
  s.tokens_per_second = replicas * steady.decoding / s.token_seconds;
  if (g.engine->requests > 0) {
    const auto requests = static_cast<double>(g.engine->requests);
    s.queue_seconds = queue_seconds(network, plan, running, requests / replicas);
    s.tokens_per_second = requests * answer / s.queue_seconds;
  }
  s.requests_per_second = s.tokens_per_second / answer;
  s.quiet_token_seconds = network.time_of({.decoding = running, .context = context}).seconds();
  s.first_token_seconds = first_token(network, plan, 0, 0);
  s.loaded_first_seconds = first_token(network, plan, steady.decoding, context);
}

void add_memory(Estimate& e, const Plan& plan, const ServingEstimate& s,
                const ProcessMemory& process) {
  const std::int64_t asked = std::max<std::int64_t>(plan.workload.micro_batch, 1);
  const std::int64_t blocks =
      CacheRoom(*plan.workload.generation.engine, plan.workload).blocks_of(asked);
  const EngineMemory& m = s.memory;
  const std::int64_t needed =
      m.weights + m.activations + checked_mul(blocks, m.block_bytes) + process.point();
  const bool has_room = s.room >= asked;
  // A share of what is free leaves the process its own, whatever the share.
  const bool of_free = plan.workload.generation.engine->engine->share_is_of_free;
  const std::int64_t budget =
      of_free ? std::min(m.budget, e.usable_bytes - process.upper) : m.budget;
  const std::int64_t taken = has_room ? budget : needed - process.point();
  e.allocated = e.reserved = {taken, taken, taken};
  const std::int64_t others = process.upper - process.point();
  e.device = {taken + process.point(), taken + process.upper, taken + process.point()};
  e.model_bytes = m.weights;
  e.peak_phase = Phase::decode;
  e.run = {Phase::prefill, Phase::decode};
  for (const Phase phase : e.run) e.phases[static_cast<std::size_t>(phase)] = {taken, taken};
  MemoryProfile memory;
  const auto add = [&](Category category, std::int64_t bytes) {
    memory.at_start[index_of(category)] = memory.at_peak[index_of(category)] = bytes;
  };
  add(Category::parameters, m.weights);
  add(Category::activations, m.activations);
  add(Category::kv_cache, taken - m.weights - m.activations);
  e.breakdown = breakdown_of(memory, process, 0, {});
  e.verdict = verdict_of(e.device, {}, plan.cluster);
  const std::int64_t available = std::min(e.usable_bytes, budget + process.point());
  e.verdict.headroom_bytes = available - needed;
  if (has_room && e.verdict.headroom_bytes >= 0 && e.device.point + others <= e.usable_bytes)
    return;
  e.verdict.gpu = {Fit::does_not_fit, needed, available};
  e.verdict.fits = false;
  e.verdict.limited_by = "gpu";
}

}  // namespace

Estimate estimate_serving(const Model& model, const Plan& plan, const Calibration& calibration) {
  const RolloutEngine& engine = *plan.workload.generation.engine;
  Estimate e;
  e.parameters = model.parameter_count();
  e.tensors = model.tensor_count();
  e.capacity_bytes = plan.cluster.gpu.capacity.count();
  e.usable_bytes = plan.cluster.gpu.usable.count();
  ServingEstimate s;
  s.replicas = plan.cluster.world() / engine.tensor_parallel;
  Program groups;  // nothing runs in it: whose communicators a process has
  groups.groups = group_shapes(divided(plan));
  const ProcessMemory process = process_memory(divided(plan), calibration, groups);
  s.memory = engine_memory(engine, model, plan, process.point());
  count_sequences(s, plan);
  add_memory(e, plan, s, process);
  if (knows_time(plan) && s.sequences > 0)
    time_requests(s, ServedNetwork(model, plan, calibration.time), plan);
  e.time.source = Source::assumed;  // rates of an engine's kernels: PyTorch's and Inductor's
  e.time.step_seconds = s.token_seconds;
  e.time.tokens_per_second = s.tokens_per_second;
  if (s.token_seconds > 0)
    e.time.generation = GenerationTime{.prefill_seconds = s.first_token_seconds,
                                       .decode_tokens_per_second = s.tokens_per_second};
  e.serving = s;
  return e;
}

}  // namespace shardplan
