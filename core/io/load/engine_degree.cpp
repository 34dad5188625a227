#include "load/engine_degree.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/diagnostic.h"
#include "parallel/shard.h"
#include "rollout/packed_products.h"
#include "serving/expert_products.h"

namespace shardplan {
namespace {

class EngineDegree {
 public:
  EngineDegree(const RolloutEngine& engine, const Model& model, const Plan& plan,
               const EngineGpus& gpus)
      : engine_(engine), model_(model), plan_(plan), gpus_(gpus) {}

  /// Empty where nothing is wrong.
  Said complaint(std::int64_t degree) const {
    if (degree == 1) return {};
    const std::int64_t heads = model_.facts.attention_heads;
    if (heads > 0 && heads % degree != 0)
      return fmt::format("{} does not divide the {} heads", degree, heads);
    const std::int64_t keys = model_.facts.key_value_heads;
    if (keys > 0 && keys % degree != 0 && degree % keys != 0)
      return fmt::format("{} neither divides the {} key-value heads nor is a multiple of them",
                         degree, keys);
    if (gpus_.shared > 0 && gpus_.shared % degree != 0)
      return gpus_.beside_trainer
                 ? fmt::format("{} does not divide the {} GPUs that it shares", degree,
                               gpus_.shared)
                 : fmt::format("{} does not divide the {} GPUs", degree, gpus_.shared);
    if (degree > gpus_.most)
      return fmt::format("{} GPUs are more than the {} of a node", degree, gpus_.most);
    return gpus_.layers_divided ? undivided(degree) : Said{};
  }

  std::int64_t nearest(std::int64_t asked) const {
    for (std::int64_t distance = 1; distance < asked; ++distance) {
      if (complaint(asked - distance).empty()) return asked - distance;
      if (asked + distance <= gpus_.most && complaint(asked + distance).empty())
        return asked + distance;
    }
    return 1;
  }

 private:
  /// What the network's own split says, whose key is of a trainer's degree.
  Said undivided(std::int64_t degree) const {
    RolloutEngine other = engine_;
    other.tensor_parallel = degree;
    try {
      shard(model_, engine_share(plan_, other));
    } catch (const InputError& e) {
      return e.diagnostic().message;
    }
    return {};
  }

  const RolloutEngine& engine_;
  const Model& model_;
  const Plan& plan_;
  const EngineGpus& gpus_;
};

}  // namespace

std::optional<DivisionProblem> engine_degree_problem(const RolloutEngine& engine,
                                                     const Model& model, const Plan& plan,
                                                     const EngineGpus& gpus) {
  const EngineDegree degrees(engine, model, plan, gpus);
  Said message = degrees.complaint(engine.tensor_parallel);
  if (message.empty()) return std::nullopt;
  const std::int64_t nearest = degrees.nearest(engine.tensor_parallel);
  const EngineGpus elsewhere{.most = engine.tensor_parallel, .shared = 0};
  const bool apart =
      gpus.beside_trainer &&
      EngineDegree(engine, model, plan, elsewhere).complaint(engine.tensor_parallel).empty();
  return DivisionProblem{
      {},
      std::move(message),
      apart ? fmt::format("{}, or placement separate", nearest) : fmt::format("{}", nearest)};
}

std::optional<DivisionProblem> experts_problem(const RolloutEngine& engine, const Model& model) {
  const std::int64_t ranks = engine.expert_parallel;
  if (ranks == 1) return std::nullopt;
  std::int64_t experts = 0;
  for (const Segment& segment : model.segments)
    experts = std::max(experts, static_cast<std::int64_t>(experts_of(segment, model).experts));
  if (experts == 0) return DivisionProblem{{}, "the model has no experts", "1"};
  if (experts % ranks == 0) return std::nullopt;
  std::int64_t fewer = ranks;
  while (experts % fewer != 0) --fewer;
  return DivisionProblem{{},
                         fmt::format("{} does not divide the {} experts", ranks, experts),
                         fmt::format("{}", fewer)};
}

}  // namespace shardplan
