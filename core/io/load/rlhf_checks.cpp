// What a workload of several models cannot be, once all of them are read.
#include "load/rlhf_checks.h"

#include <fmt/format.h>

#include "frameworks/registry.h"
#include "parallel/shard.h"
#include "trainers/description.h"

namespace shardplan {

/// What of an engine is not counted.
void note_engine(Job& job) {
  if (job.model.facts.image.patches > 0)
    job.assumed.emplace_back(
        "the rollout engine's tower: its weights count, what it makes of images does not");
  if (job.model.facts.has_state)
    job.assumed.emplace_back(
        "the rollout engine's layers with a state: their states take a part of its share of the "
        "GPU that is counted as room for keys and values");
}

/// A prompt has its images.
void check_prompt(const ObjectReader& work, const Job& actor, std::int64_t prompt) {
  const std::int64_t images =
      actor.plan.workload.images.per_sample * actor.model.facts.image.tokens;
  if (images < prompt || images == 0) return;
  work.fail("prompt_length", fmt::format("{} tokens have no room for images of {}", prompt, images),
            fmt::format("more than {}, fewer images or a smaller image_tokens", images));
}

/// Programs that start out from different processes cannot be run in turn.
void check_frameworks(const ObjectReader& work, const Rlhf& rlhf) {
  const AlgorithmDescription& algorithm = rlhf.description();
  for (const Role* one : rlhf.all_roles()) {
    const Role& role = *one;
    const bool alone = algorithm.generates && !rlhf.rollout;
    const ModelFacts& facts = role.model.facts;
    if (alone && (facts.image.has_tower || facts.has_state))
      work.fail(
          "kind",
          facts.has_state
              ? say("{} of networks with a state is modelled in a rollout engine alone ({})",
                    algorithm.label, name_of(role.kind))
              : say("{} of networks that read images is modelled in a rollout engine alone ({})",
                    algorithm.label, name_of(role.kind)),
          "a rollout, an algorithm that generates nothing, or other models");
    const FrameworkTraits& framework = traits_of(role.plan);
    if (!framework.runs_rlhf)
      work.fail("kind",
                fmt::format("rlhf with framework '{}' ({}) is not modelled", framework.name.get(),
                            name_of(role.kind)),
                "single, ddp, fsdp1, fsdp2, deepspeed or megatron");
    if (!role.plan.trainer->runs_rlhf)
      work.fail("kind",
                fmt::format("{} runs one model; rlhf has several", role.plan.trainer->words),
                "trainer trl or loop");
    const Parallel& degrees = role.plan.parallel;
    const bool divides = is_sharded(role.plan) || degrees.pipeline > 1;
    const bool own =
        role.plan.trainer->divides_sequences && degrees.model_ranks() == degrees.sequence;
    const bool megatron = framework.split == SplitStyle::megatron;
    if (divides && !own && !megatron)
      work.fail("kind", "rlhf with layers divided over GPUs (parallel) is not modelled",
                "degrees of 1 beside parallel.data, or framework megatron");
    if (megatron && algorithm.generates && !rlhf.rollout)
      work.fail("kind", "generation under Megatron-LM is modelled in a rollout engine alone",
                "a rollout, or an algorithm that generates nothing");
    if (megatron && !algorithm.generates && degrees.pipeline > 1)
      work.fail("kind",
                "preferences over pipeline stages, which hand on the reference's activations "
                "too, are not modelled",
                "parallel.pipeline 1");
    if (!framework.has_hybrid_engine && rlhf.hybrid)
      work.fail("hybrid_engine",
                fmt::format("is DeepSpeed's, and the framework is {}", framework.name.get()),
                "framework deepspeed");
  }
}

}  // namespace shardplan
