#include "lowering/lower.h"
#include "lowering/deepspeed/stages.h"

namespace shardplan {

Program lower_deepspeed(const Model& model, const Plan& plan, const ModelRun& run,
                        std::int64_t rank) {
  const Engine engine = engine_of(model, plan);
  const int stage = plan.framework.deepspeed.zero.stage;
  Program program = stage == 0              ? lower_stage0(model, plan, run, engine)
                    : stage == 3            ? lower_stage3(model, plan, run, engine)
                    : engine.bf16_optimizer ? lower_bf16_optimizer(model, plan, run, engine)
                                            : lower_stage12(model, plan, run, engine, rank);
  program.rank = rank;
  return program;
}

std::vector<std::int64_t> distinct_partitions(const Model& model, const Plan& plan) {
  const int stage = plan.framework.deepspeed.zero.stage;
  if (stage == 0 || stage == 3) return {0};
  const Engine engine = engine_of(model, plan);
  if (engine.ranks == 1 || engine.bf16_optimizer) return {0};
  const std::int64_t most = FlatLayout(model, engine.ranks).rank_with_most_touched();
  std::vector<std::int64_t> ranks{0, engine.ranks - 1};
  if (most != 0 && most != engine.ranks - 1) ranks.push_back(most);
  return ranks;
}

}  // namespace shardplan
