// The same job under other plans, side by side.
#pragma once

#include <string>
#include <vector>

#include "estimate/estimate.h"
#include "load/job.h"

namespace shardplan {

struct Alternative {
  std::string name;  ///< "ZeRO-2 + optimizer on the host", "tensor 4 instead of 8"
  Plan plan;         ///< rlhf: of the model that trains first
  Estimate estimate;
  bool is_current = false;  ///< the job as it was asked
};

/// Training: at every ZeRO stage and offload; where degrees divide the network, those that they
/// allow, and each degree halved and doubled with the same global batch.
std::vector<Alternative> compare_stages(const Model& model, const Plan& plan,
                                        const Calibration& calibration);

/// Generation: formats of the weights and of the KV cache, batches, weights on the host.
std::vector<Alternative> compare_generation(const Model& model, const Plan& plan,
                                            const Calibration& calibration);

/// Several models: at every ZeRO stage, what is frozen on the host while it is idle, and without
/// the hybrid engine.
std::vector<Alternative> compare_rlhf(const Rlhf& rlhf, const Calibration& calibration);

/// A job of any kind.
std::vector<Alternative> compare_plans(const Job& job, const Calibration& calibration);

}  // namespace shardplan
