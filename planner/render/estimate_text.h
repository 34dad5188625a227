// An estimate as text: the parts that several answers share, and the whole of it.
#pragma once

#include <string>
#include <vector>

#include "estimate/estimate.h"
#include "load/job.h"
#include "questions/cost.h"

namespace shardplan {

/// One line each for GPU, host and NVMe.
std::string resource_lines(const Estimate& e);
/// What fills the fullest GPU: a bar a category, largest first.
std::string breakdown_bars(const Estimate& e, const GpuAbilities& gpu);
/// The category that takes most at the peak.
Category largest_category(const Estimate& e);
/// What a category is, in this plan: "what AdamW keeps for the trained parameters, 6.74 B in all".
std::string what_it_is(Category c, const Estimate& e, const Plan& plan);
/// Both in a sentence.
std::string largest_consumer(const Estimate& e, const Plan& plan);
/// Parameters, gradients, master copies and optimizer states, with bytes a parameter.
std::string state_table(const Estimate& e, const GpuAbilities& gpu);
/// Bytes of these four together.
std::int64_t model_states(const Estimate& e);
/// How sure they are: as the least sure of them.
Source model_states_source(const Estimate& e);
std::string phase_table(const Estimate& e);
std::string traffic_text(const Estimate& e);
/// `gpus`: of the job, whose throughput it is.
std::string time_lines(const Estimate& e, std::int64_t gpus);
/// How far off such steps were from measured ones: "27 % in the mean, 90 % at most, in 40 runs".
std::string step_error_text(const TimeEstimate& time);
std::string error_line(const TimeEstimate& time);
/// One text for each kind of step among them that has a time.
std::vector<std::string> step_error_texts(const std::vector<const Estimate*>& estimates);

/// The whole answer of `shardplan estimate`.
std::string estimate_text(const Estimate& e, const Job& job, const Calibration& calibration,
                          const Cost& cost);

}  // namespace shardplan
