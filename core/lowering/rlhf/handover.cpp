#include "lowering/rlhf/handover.h"

#include <algorithm>

#include "frameworks/registry.h"
#include "lowering/rlhf/idle.h"
#include "lowering/tensors.h"
#include "parallel/shard.h"
#include "program/tape.h"
#include "trainers/description.h"

namespace shardplan {
namespace {

/// Of layers that are cut: the parts of the largest tensor from all ranks, and the whole of it that
/// is made of them; of experts a rank's own tensor from each of the ranks that divide them (verl
/// 0.8, utils/megatron_utils.py, per_tensor_generator).
std::int64_t parts_bytes(const Role& actor) {
  std::int64_t largest = 0;
  actor.model.for_each_distinct([&](const Parameter& p, std::int64_t) {
    const std::int64_t each = p.kind == ParameterKind::expert && !p.shape.empty()
                                  ? p.numel / p.shape.front() * actor.plan.parallel.expert
                                  : p.numel;
    largest = std::max(largest, checked_mul(each, size_of(actor.plan.precision.compute)));
  });
  return checked_mul(largest, 2);
}

/// The buffers of messages: to other GPUs one is filled while one is sent (verl, checkpoint_engine/
/// nccl_checkpoint_engine.py, prepare: on every rank).
std::int64_t message_buffers(const RolloutEngine& engine) {
  return checked_mul(engine.weight_bucket, engine.at().shares_gpus ? 1 : 2);
}

/// What the trainer gathers to hand its weights over: tensor by tensor where they are in shards,
/// and all at once where adapters are merged into ZeRO-3's (TRL 1.16, generation/
/// vllm_generation.py, _iter_named_params); beside it a copy of the tensor, where a trainer makes
/// one.
std::int64_t handover_bytes(const Rlhf& rlhf) {
  const Role& actor = rlhf.roles.front();
  const Plan& plan = actor.plan;
  if (is_sharded(plan) && !plan.trainer->divides_sequences) return parts_bytes(actor);
  const bool gathers = traits_of(plan).shards_parameters(plan);
  const bool copies = plan.trainer->copies_handed_tensors && rlhf.rollout->at().shares_gpus;
  if (!gathers && !copies) return 0;
  std::int64_t all = 0, largest = 0;
  actor.model.for_each_distinct([&](const Parameter& p, std::int64_t repeat) {
    const std::int64_t bytes =
        round_up(checked_mul(p.numel, size_of(plan.precision.params)), kAllocationUnit);
    largest = std::max(largest, bytes);
    all = checked_add(all, checked_mul(bytes, repeat));
  });
  const std::int64_t gathered = plan.workload.lora && is_zero3(plan) ? all : largest;
  return (gathers ? gathered : 0) + (copies ? largest : 0);
}

/// Bytes of tensors, and how many there are.
struct Tensors {
  std::int64_t bytes = 0, count = 0;
  void add(const Parameter& p, DType type, std::int64_t times, std::int64_t each) {
    bytes = checked_add(bytes, checked_mul(checked_mul(p.numel, size_of(type)), times));
    count = checked_add(count, checked_mul(each, times));
  }
};

constexpr const char* kHandedOver = "weights to the rollout engine";

/// Of layers that are cut: each stage's ranks send what they have to the other stages', experts are
/// gathered from the ranks that divide them, one of each at a time, and the rest from those that
/// divide layers (verl 0.8, utils/megatron_utils.py, per_tensor_generator).
void gather_parts(ProgramBuilder& b, const Role& actor) {
  const Parallel& degrees = actor.plan.parallel;
  const DType type = actor.plan.precision.compute;
  Tensors experts, rest;
  actor.model.for_each_distinct([&](const Parameter& p, std::int64_t repeat) {
    if (p.kind == ParameterKind::expert && !p.shape.empty())
      experts.add(p, type, repeat, ceil_div(p.shape.front(), degrees.expert));
    else
      rest.add(p, type, repeat, 1);
  });
  const std::int64_t own =
      checked_add(ceil_div(rest.bytes, degrees.tensor),
                  ceil_div(experts.bytes, degrees.expert * degrees.expert_tensor));
  const auto exchange = [&](Collective kind, std::int64_t bytes, std::int64_t count, Group group,
                            std::int64_t ranks) {
    if (ranks > 1 && bytes > 0) b.collective(kind, bytes, kHandedOver, count, group);
  };
  exchange(Collective::broadcast, own, rest.count + experts.count, Group::pipeline,
           degrees.pipeline);
  exchange(Collective::all_gather, experts.bytes, experts.count, Group::expert, degrees.expert);
  exchange(Collective::all_gather, rest.bytes, rest.count, Group::tensor, degrees.tensor);
}

/// Everything that is gathered on the way, tensor by tensor.
void gather(ProgramBuilder& b, const Role& actor) {
  const Plan& plan = actor.plan;
  const Parallel& degrees = plan.parallel;
  if (degrees.tensor > 1 || degrees.expert > 1 || degrees.pipeline > 1) {
    gather_parts(b, actor);
  } else if (traits_of(plan).shards_parameters(plan)) {
    Tensors all;
    actor.model.for_each_distinct([&](const Parameter& p, std::int64_t repeat) {
      all.add(p, plan.precision.params, repeat, 1);
    });
    b.collective(Collective::all_gather, all.bytes, kHandedOver, all.count, Group::data);
  } else {
    return;
  }
  b.wait(Stream::communication);
}

/// What a model takes in the type of its shards, and with one block of each kind.
struct WholeBytes {
  std::int64_t all = 0, one_block = 0;
};
WholeBytes whole_bytes(const Role& role) {
  WholeBytes whole;
  role.model.for_each_distinct([&](const Parameter& p, std::int64_t repeat) {
    const std::int64_t bytes = checked_mul(p.numel, size_of(role.plan.precision.params));
    whole.all = checked_add(whole.all, checked_mul(bytes, repeat));
    whole.one_block = checked_add(whole.one_block, bytes);
  });
  return whole;
}

/// What verl makes of a trainer's shards before the engine wakes (0.8, verl/workers/
/// fsdp_workers.py, rollout_mode; utils/fsdp_utils.py, collect_lora_params): a state_dict, which
/// under FSDP1 copies them unit after gathered unit; of adapters alone copies on the host, with the
/// model gathered. Returns the bytes that stay until the engine has them.
std::int64_t collect_weights(ProgramBuilder& b, const Rlhf& rlhf, const Program& training) {
  const Role& actor = rlhf.roles.front();
  if (!actor.plan.trainer->copies_shards || !traits_of(actor.plan).shards_parameters(actor.plan))
    return 0;
  const WholeBytes whole = whole_bytes(actor);
  if (actor.plan.workload.lora) {
    b.transient(Category::gathered_parameters,
                rlhf.rollout->layered_summon ? whole.one_block : whole.all);
    return 0;
  }
  if (!traits_of(actor.plan).copies_state_dict) return 0;
  std::int64_t shards = 0;
  for (const Event& e : training.resident)
    if (e.category == Category::parameters)
      shards = checked_add(shards, checked_mul(e.bytes, e.count));
  b.alloc(Category::gathered_parameters, shards);
  b.transient(Category::gathered_parameters, whole.one_block);
  return shards;
}

/// At level 1 an engine that falls asleep copies its weights to the host, and back when it wakes,
/// though the trainer's come next (vLLM, device_allocator/cumem.py, sleep and wake_up).
void move_weights(ProgramBuilder& b, const RolloutEngine& engine, const EngineMemory& memory,
                  bool to_gpu) {
  if (engine.sleep_level != 1) return;
  b.copy(LinkKind::host, to_gpu, memory.weights,
         to_gpu ? "the rollout engine's weights to the GPU" : "the rollout engine's weights away");
  b.wait(Stream::copy);
}

/// What an engine keeps on the GPU, or on the host, while others work.
void add_sleeper(Program& whole, const RolloutEngine& engine, const EngineMemory& memory) {
  if (!engine.at().shares_gpus) return;
  ProgramBuilder b(whole);
  b.resident(Category::workspace, engine.sleep_level > 0 ? memory.asleep : memory.activations);
  if (engine.sleep_level == 0) {
    b.resident(Category::parameters, memory.weights);
    b.resident(Category::kv_cache, memory.cache);
  }
  if (engine.sleep_level == 1) whole.host.pinned = checked_add(whole.host.pinned, memory.weights);
}

/// With its cache, and what its passes take beside what it keeps asleep. Weights and cache are the
/// driver's again when it sleeps, and so is what its process has cached (vllm/device_allocator/
/// cumem.py, sleep: empty_cache), which is the trainer's own where the engine is inside.
void answer(ProgramBuilder& b, const EngineMemory& memory, bool inside) {
  b.alloc(Category::kv_cache, memory.cache, Stream::engine);
  b.transient(Category::workspace, memory.activations - memory.asleep,
              inside ? Stream::compute : Stream::engine);
  b.free(Category::kv_cache, memory.cache, Stream::engine);
  if (inside) b.empty_cache();
}

/// The judge wakes with weights of its own, which nobody hands over, and its whole cache (verl 0.8,
/// experimental/reward_loop/reward_loop.py, compute_rm_score).
void wake_judge(ProgramBuilder& b, const Judge& judge, bool inside) {
  if (!judge.engine.sleeps()) return;
  const EngineMemory memory = engine_memory(judge.engine, judge.model, judge.plan);
  b.alloc(Category::parameters, memory.weights, Stream::engine);
  move_weights(b, judge.engine, memory, true);
  answer(b, memory, inside);
  move_weights(b, judge.engine, memory, false);
  b.free(Category::parameters, memory.weights, Stream::engine);
}

}  // namespace

Program lower_rollout(const Rlhf& rlhf, const Program& training) {
  const EngineMemory memory = engine_memory(*rlhf.rollout, *rlhf.generator, rlhf.generation);
  const Role& actor = rlhf.roles.front();
  const bool wakes = rlhf.rollout->sleeps();
  Program program;
  ProgramBuilder b(program);
  const bool inside = actor.plan.trainer->has_engine_inside;
  const EmptiesCache& empties = actor.plan.trainer->empties_cache;
  b.begin_phase(Phase::prefill);
  if (empties.before_engine_wakes) b.empty_cache();
  bring(b, training, actor, Needed::parameters, true);
  const std::int64_t collected = collect_weights(b, rlhf, training);
  // A state_dict that copies nothing has the shards, wherever the model goes meanwhile.
  const bool keeps = collected == 0;
  if (!keeps) bring(b, training, actor, Needed::parameters, false);
  if (wakes) b.alloc(Category::parameters, memory.weights, Stream::engine);
  if (wakes) move_weights(b, *rlhf.rollout, memory, true);
  b.alloc(Category::communication_buffers, message_buffers(*rlhf.rollout));
  b.transient(Category::gathered_parameters, handover_bytes(rlhf));
  gather(b, actor);
  b.free(Category::communication_buffers, message_buffers(*rlhf.rollout));
  b.free(Category::gathered_parameters, collected);
  if (keeps) bring(b, training, actor, Needed::parameters, false);
  if (empties.when_engine_has_weights) b.empty_cache();
  if (wakes) answer(b, memory, inside);
  if (wakes) move_weights(b, *rlhf.rollout, memory, false);
  if (wakes) b.free(Category::parameters, memory.weights, Stream::engine);
  if (empties.when_engine_sleeps) b.empty_cache();
  if (rlhf.judge) wake_judge(b, *rlhf.judge, inside);
  b.end_phase(Phase::prefill);
  return program;
}

void add_processes(Program& whole, const Rlhf& rlhf) {
  const TrainerDescription& trainer = *rlhf.roles.front().plan.trainer;
  const auto add = [&](const RolloutEngine& engine) {
    if (engine.at().shares_gpus && !trainer.has_engine_inside)
      whole.engines_beside.push_back(engine.tensor_parallel);
  };
  if (rlhf.rollout) add(*rlhf.rollout);
  if (rlhf.judge) add(rlhf.judge->engine);
  if (generates(rlhf.algorithm) && trainer.has_models_apart)
    whole.processes_beside = static_cast<std::int64_t>(rlhf.roles.size()) - 1;
}

void add_engine(Program& whole, const Rlhf& rlhf) {
  if (rlhf.rollout)
    add_sleeper(whole, *rlhf.rollout,
                engine_memory(*rlhf.rollout, *rlhf.generator, rlhf.generation));
  if (rlhf.judge)
    add_sleeper(whole, rlhf.judge->engine,
                engine_memory(rlhf.judge->engine, rlhf.judge->model, rlhf.judge->plan));
}

}  // namespace shardplan
