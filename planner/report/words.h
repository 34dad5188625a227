// The vocabulary that sections share: core's enumerations as messages.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "load/job.h"
#include "report/report.h"

namespace shardplan::report {

/// A message of the catalogue.
Text message(std::string key, std::vector<Argument> arguments = {});

Text words_of(Fit fit);
Text words_of(Phase phase);
/// A process's context and the library of collectives have the names of the GPU's runtime.
Text words_of(Category category, const GpuAbilities& gpu);
Text words_of(LinkKind link);
Text words_of(RoleKind role);

Text words_of(Quantization format);

/// "4 × A100-SXM4-40GB"
Text cluster_words(const Cluster& cluster);

/// "llama-2-7b", or the family when the model has no name.
std::string model_name(const Model& model);

/// "DeepSpeed ZeRO-3, optimizer on the host"
Text framework_words(const Framework& framework);

/// The same, or what generates: "transformers", "ZeRO-Inference: DeepSpeed ZeRO-3".
Text framework_words(const Plan& plan);

/// "tensor 8 × pipeline 16 × data 64"; nothing where only samples are divided.
Cell degree_words(const Plan& plan);

/// "a + b + c"
Cell joined(const std::vector<Cell>& cells);

/// The colour of a category: its name.
std::string color_of(Category category);

/// Swatches and names of the categories that any of the given has bytes in.
std::vector<std::pair<std::string, Text>> legend_of(const std::vector<CategoryBytes>& all,
                                                    const GpuAbilities& gpu);

/// By category, at the peak.
CategoryBytes at_peak(const Estimate& estimate);

/// Sent to other GPUs, or copied, in a step.
std::int64_t sent(const Estimate& estimate, LinkKind link);

}  // namespace shardplan::report
