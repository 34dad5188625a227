#include "checkpoint/rank_place.h"

namespace shardplan::validator {

int RankPlace::keeper(const Unit& unit) const {
  if (sharding.parts(unit) > 1) return rank;
  if (unit.of_experts()) return rank - sharding.copy * copy_stride;
  return rank - sharding.rank * data_stride;
}

RankPlace place_of(const EngineJob& job, int rank) {
  const int world = static_cast<int>(job.plan().cluster.world());
  const int tensor = job.tensor_ranks(), stages = job.training.pipeline.stages;
  const int experts = job.expert_ranks();
  const int data = world / (tensor * stages);
  const int here = rank / tensor % data;  // among those with other samples or rows
  const int in_stage = rank % (tensor * data);
  return {.rank = rank,
          .network = {.tensor = rank % tensor,
                      .context = here % job.context_ranks(),
                      .stage = rank / (tensor * data),
                      .experts = in_stage % experts},
          .sharding = {job.training.stage, data, here, tensor * data / experts, in_stage / experts},
          .data_stride = tensor,
          .copy_stride = experts};
}

}  // namespace shardplan::validator
