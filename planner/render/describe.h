// Verdicts, plans and clusters in words.
#pragma once

#include <string>

#include "estimate/estimate.h"
#include "load/job.h"

namespace shardplan {

/// "FITS", "TIGHT", "DOES NOT FIT", "UNKNOWN"
std::string verdict_word(Fit fit);

/// The verdict over GPU, host and NVMe together.
Fit overall(const Verdict& verdict);
/// The same in a word; "FITS (GPU)" where nobody knows whether the rest is enough.
std::string verdict_words(const Verdict& verdict);

/// "the forward pass", "the backward pass", "the optimizer step"
std::string phase_words(Phase phase);

/// "optimizer states", "CUDA context"
std::string category_words(Category category, const GpuAbilities& gpu);

/// "4 × A100-SXM4-40GB", "2 nodes of 8 × H100-SXM5-80GB"
std::string describe_cluster(const Cluster& cluster);

/// The verdict, the model and the cluster on a line; below it what is run on it.
std::string headline(const Estimate& e, const Job& job);

/// The model and the cluster, and what is run on it, without a verdict.
std::string subject(const Job& job);

}  // namespace shardplan
