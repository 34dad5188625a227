// An estimate as text: the parts that several answers share.
#pragma once

#include <string>

#include "estimate/estimate.h"
#include "load/job.h"

namespace shardplan {

/// "FITS", "TIGHT", "DOES NOT FIT", "UNKNOWN"
std::string verdict_word(Fit fit);

/// "full fine-tuning with DeepSpeed ZeRO-3, bf16-master, AdamW; micro-batch 1 × 4,096 tokens"
std::string describe_plan(const Job& job);
/// "4 × A100-SXM4-40GB", "2 nodes of 8 × H100-SXM5-80GB"
std::string describe_cluster(const Cluster& cluster);

/// One line each for GPU, host and NVMe.
std::string resource_lines(const Estimate& e);
/// What fills the fullest GPU: a bar a category, largest first.
std::string breakdown_bars(const Estimate& e);
/// The category that takes most, in a sentence that says why.
std::string largest_consumer(const Estimate& e, const Plan& plan);
std::string phase_table(const Estimate& e);
std::string traffic_table(const Estimate& e);
std::string time_lines(const Estimate& e);
/// Warnings, assumptions and the standing of each number.
std::string foundation(const Estimate& e, const Job& job, const Calibration& calibration);

/// The whole answer of `shardplan estimate`.
std::string estimate_text(const Estimate& e, const Job& job, const Calibration& calibration);

}  // namespace shardplan
