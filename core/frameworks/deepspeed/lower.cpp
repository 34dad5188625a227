#include "frameworks/deepspeed/lower.h"

#include "frameworks/deepspeed/expert_groups.h"
#include "frameworks/deepspeed/stages.h"
#include "frameworks/usual.h"
#include "lowering/pipeline/schedule.h"
#include "parallel/groups.h"

namespace shardplan {

namespace {

/// A PipelineModule: the same optimizers, over the parameters of one stage.
Program lower_pipeline(const Model& model, const Plan& plan, const ModelRun& run,
                       std::int64_t rank) {
  const std::int64_t ranks = plan.cluster.world() / plan.parallel.pipeline;  // of a stage
  const Stage stage = stage_of(model, plan.parallel, rank / ranks);
  const Model own = parameters_of(model, stage);
  Engine engine = engine_of(own, plan);
  engine.stage = &stage;
  Program program = plan.framework.deepspeed.zero.stage == 0 ? lower_stage0(own, plan, run, engine)
                    : engine.bf16_optimizer ? lower_bf16_optimizer(own, plan, run, engine)
                                            : lower_stage12(own, plan, run, engine, 0);
  program.rank = rank;
  program.groups = group_shapes(plan);
  program.bubble_share = bubble_share(plan);
  return program;
}

}  // namespace

Program lower_deepspeed(const Model& model, const Plan& plan, const ModelRun& run,
                        std::int64_t rank) {
  const int stage = plan.framework.deepspeed.zero.stage;
  if (plan.parallel.pipeline > 1) return lower_pipeline(model, plan, run, rank);
  const Engine engine = engine_of(model, plan);
  Program program = stage == 0              ? lower_stage0(model, plan, run, engine)
                    : stage == 3            ? lower_stage3(model, plan, run, engine)
                    : engine.bf16_optimizer ? lower_bf16_optimizer(model, plan, run, engine)
                                            : lower_stage12(model, plan, run, engine, rank);
  program.rank = rank;
  return program;
}

std::vector<std::int64_t> deepspeed_distinct_ranks(const Model& model, const Plan& plan) {
  if (plan.parallel.pipeline > 1) return usual::first_of_stages(model, plan);
  const int stage = plan.framework.deepspeed.zero.stage;
  if (stage == 0 || stage == 3) return {0};
  const Engine engine = engine_of(model, plan);
  if (engine.ranks == 1 || engine.bf16_optimizer) return {0};
  const std::int64_t most =
      FlatLayout(model, engine.ranks, outside_expert_groups(plan)).rank_with_most_touched();
  std::vector<std::int64_t> ranks{0, engine.ranks - 1};
  if (most != 0 && most != engine.ranks - 1) ranks.push_back(most);
  return ranks;
}

}  // namespace shardplan
