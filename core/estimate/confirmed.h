// What of a job measured runs have confirmed: only there are the bytes of its tensors called exact.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "estimate/calibration.h"
#include "plan/plan.h"
#include "program/program.h"

namespace shardplan {

/// What a plan has that decides which tensors there are and how many bytes they take, by name: its
/// precision, formats of weights, adapters, degrees, and what waits on the host or on NVMe.
std::vector<std::string> features_of(const Plan& plan, const HostMemory& host);

/// Those of them that no measured run of the plan's framework had, and the GPU's runtime where no
/// run was on such a one. None: its tensors were counted by the framework itself.
std::vector<std::string> unconfirmed(const Plan& plan, const HostMemory& host,
                                     const Calibration& calibration);

/// Exact, or modelled where something of the plan is unconfirmed.
Source tensors_source(const Plan& plan, const HostMemory& host, const Calibration& calibration);

}  // namespace shardplan
