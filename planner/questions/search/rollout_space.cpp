#include "questions/search/rollout_space.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "job/cluster_json.h"
#include "job/fields.h"

namespace shardplan {
namespace {

constexpr std::array kIdles{Idle::gpu, Idle::optimizer, Idle::host};
constexpr std::array<std::int64_t, 3> kSleepLevels{0, 1, 2};

std::int64_t said(const Json& written, const char* pointer, std::int64_t otherwise) {
  const auto value = field_of(written, pointer);
  return value && value->is_number_integer() ? value->get<std::int64_t>() : otherwise;
}

void add_unique(std::vector<std::int64_t>& all, std::int64_t value) {
  if (std::ranges::find(all, value) == all.end()) all.push_back(value);
}

}  // namespace

RolloutSpace::RolloutSpace(const Job& job, const Json& written,
                           std::vector<std::int64_t> micro_batches,
                           std::vector<std::int64_t> degrees)
    : job_(job),
      written_(written),
      micro_batches_(std::move(micro_batches)),
      degrees_(std::move(degrees)) {
  const Cluster& cluster = job.rlhf->roles.front().plan.cluster;
  nodes_ = cluster.nodes;
  gpus_per_node_ = cluster.gpus_per_node;
  if (job.rlhf->rollout) engine_ = *job.rlhf->rollout;
  if (engine_.at().shares_gpus) return;
  const std::int64_t own = engine_.gpus.value_or(0);
  if (engine_.same_machines)
    gpus_per_node_ += own / nodes_;
  else
    nodes_ += own / gpus_per_node_;
}

/// Every half and quarter of the GPUs for an engine of its own; of several machines whole ones.
void RolloutSpace::add_places(std::vector<GpuSharing>& all, const PlaceTraits& place) const {
  const Role& actor = job_.rlhf->roles.front();
  if (place.shares_gpus) {
    for (const std::int64_t sleep : kSleepLevels)
      for (const Idle idle : kIdles)
        all.push_back({&place, nodes_, gpus_per_node_, 0, 0, false, sleep, idle});
    return;
  }
  const std::int64_t units = in_machines() ? gpus_per_node_ : nodes_;
  std::vector<std::int64_t> trainers, behind{engine_.steps_off_policy};
  for (const std::int64_t quarters : {1, 2, 3})
    if (units * quarters % 4 == 0) trainers.push_back(units * quarters / 4);
  if (!engine_.at().shares_gpus)
    add_unique(trainers,
               in_machines() ? actor.plan.cluster.gpus_per_node : actor.plan.cluster.nodes);
  if (engine_.steps_off_policy == 0 && place.can_run_ahead) behind.push_back(1);
  for (const std::int64_t count : trainers) {
    if (count >= units) continue;
    GpuSharing s{&place, nodes_, gpus_per_node_, 0, 0, false, 0, actor.idle};
    (in_machines() ? s.gpus_per_node : s.nodes) = count;
    s.engine_gpus = nodes_ * gpus_per_node_ - s.nodes * s.gpus_per_node;
    for (const std::int64_t steps : behind) {
      s.behind = steps;
      s.further_behind = steps > engine_.steps_off_policy;
      all.push_back(s);
    }
  }
}

std::vector<GpuSharing> RolloutSpace::sharings() const {
  std::vector<GpuSharing> all;
  if (!job_.rlhf->rollout)
    all.push_back({nullptr, nodes_, gpus_per_node_, 0, 0, false, 0, job_.rlhf->roles.front().idle});
  if (job_.rlhf->hybrid) return all;
  for (const PlaceTraits& place : kPlaceTraits) add_places(all, place);
  return all;
}

/// A step trains on as many samples, however many GPUs share them.
std::int64_t RolloutSpace::samples_of_rank(const GpuSharing& sharing) const {
  const Plan& plan = job_.rlhf->roles.front().plan;
  const std::int64_t of_rank =
      said(written_, "/workload/micro_batch", 1) * plan.workload.gradient_accumulation;
  const std::int64_t before = plan.cluster.world();
  const std::int64_t all = of_rank * before, now = sharing.nodes * sharing.gpus_per_node;
  // GPUs that a copy of the model is divided among stay so many.
  const std::int64_t divided = before / plan.data_ranks();
  return now % divided == 0 && all % now == 0 ? all / now : 0;
}

std::vector<RolloutPoint> RolloutSpace::points(const GpuSharing& sharing) const {
  const std::int64_t samples = samples_of_rank(sharing);
  std::vector<RolloutPoint> all;
  const bool fixed = field_of(written_, "/workload/token_budget").has_value();
  const std::int64_t own = said(written_, "/workload/micro_batch", 1);
  std::vector<std::int64_t> degrees = degrees_;
  const std::int64_t in_node =
      std::min(job_.rlhf->roles.front().plan.cluster.gpus_per_node,
               sharing.engine_gpus > 0 ? sharing.engine_gpus : gpus_per_node_);
  if (degrees.empty())
    for (std::int64_t degree = 1; degree <= in_node; degree *= 2) degrees.push_back(degree);
  if (sharing.place == nullptr) degrees = {1};
  for (std::int64_t micro = samples; micro >= 1; --micro) {
    if (samples % micro != 0 || (fixed && micro != own)) continue;
    if (!micro_batches_.empty() && std::ranges::find(micro_batches_, micro) == micro_batches_.end())
      continue;
    for (const std::int64_t degree : degrees)
      all.push_back({sharing, micro, samples / micro, degree});
  }
  return all;
}

std::optional<std::int64_t> RolloutSpace::own_share(const GpuSharing& sharing) const {
  if (sharing.place == nullptr || sharing.place->shares_gpus) return std::nullopt;
  const bool own = sharing.place == &engine_.at();
  return std::llround(100 * (own ? engine_.utilization : engine_.engine->utilization));
}

std::vector<FieldEdit> RolloutSpace::fields(const RolloutPoint& p, std::int64_t hundredths) const {
  std::vector<FieldEdit> all{{"/workload/micro_batch", p.micro},
                             {"/workload/gradient_accumulation", p.accumulation}};
  const GpuSharing& s = p.sharing;
  const Cluster& before = job_.rlhf->roles.front().plan.cluster;
  if (const auto answers = field_of(written_, "/workload/generation_batch"))
    all.push_back({"/workload/generation_batch",
                   answers->get<std::int64_t>() * before.world() / (s.nodes * s.gpus_per_node)});
  if (before.nodes != s.nodes || before.gpus_per_node != s.gpus_per_node) {
    Cluster changed = before;
    changed.nodes = s.nodes;
    changed.gpus_per_node = s.gpus_per_node;
    all.push_back({"/cluster", cluster_json(changed, false)});
  }
  if (s.place == nullptr) return all;
  const auto of_engine = [&](const char* key, Json value) {
    all.push_back({std::string("/workload/rollout/") + key, std::move(value)});
  };
  if (!job_.rlhf->rollout) of_engine("engine", engine_.engine->name);
  of_engine("placement", s.place->name);
  of_engine("gpus", s.engine_gpus > 0 ? Json(s.engine_gpus) : Json());
  of_engine("same_machines", s.engine_gpus > 0 && in_machines() ? Json(true) : Json());
  of_engine("steps_off_policy", s.behind > 0 ? Json(s.behind) : Json());
  of_engine("tensor_parallel", p.tensor);
  of_engine("sleep_level", s.sleep);
  of_engine("gpu_memory_utilization", static_cast<double>(hundredths) / 100);
  all.push_back({"/workload/models/actor/idle", name_of(s.actor)});
  return all;
}

}  // namespace shardplan
