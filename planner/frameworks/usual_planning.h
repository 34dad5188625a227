// What frameworks do that do nothing of their own there: values of FrameworkPlanning.
#pragma once

#include "frameworks/planning.h"

namespace shardplan::usual {

/// The framework's name.
std::string group(const Plan& plan);

/// accelerate, a launch script and the job; without accelerate, which makes no meshes of layers,
/// where layers are divided.
std::vector<const ExportFormat*> trainer_formats(const Plan& plan);
/// "distributed_type: MULTI_GPU", and accelerate's own precision and accumulation.
std::string accelerate_block(const Plan& plan);
/// The latter.
std::string accelerate_precision(const Plan& plan);
/// A program with the arguments of Hugging Face's TrainingArguments.
Launch trainer_launch(const Job& job);
/// Those arguments; `type` is that of mixed precision.
std::string trainer_arguments(const Plan& plan, DType type, std::string_view more = "");
/// All that its table has.
void write_options(Json& framework, const Plan& plan);
inline void nothing_inlined(Json&, const Plan&) {}

std::vector<FrameworkRule> no_rules(const RuleContext& context);
inline void no_degree(Plan&, Degree, const Plan&) {}
inline void no_precision(Plan&, const Plan&, bool) {}
inline void no_offloads(Plan&) {}

inline void no_changes(std::vector<Change>&, const Model&, const Plan&) {}
inline void no_offload_changes(std::vector<Change>&, const Plan&) {}
/// What FSDP divides, on the host.
inline Change divided_on_host(void (*apply)(Plan&)) {
  return {"shards and optimizer states on the host",
          "fsdp_offload_params: true; --cpu-offload true", apply, "offload"};
}
inline PeerJob no_peers(const Plan&) {
  return {};
}

/// The base's own options where it runs under `kind`; else defaults.
Framework own_or_default(const Plan& base, FrameworkKind kind);

}  // namespace shardplan::usual
