// Models of a job of kind rlhf that have GPUs of their own: `gpus` and `beside` of their entries.
#pragma once

#include <optional>
#include <string>

#include "json/document.h"
#include "lowering/rlhf/roles.h"

namespace shardplan {

class ApartModels {
 public:
  /// `models`: workload.models, or null; both outlive this.
  ApartModels(const Json* models, const std::string& file) : models_(models), file_(file) {}

  bool has(RoleKind kind) const;
  /// As many GPUs of the job's kind as the model, or the one that it is beside, says: of one
  /// machine of the job's, or of whole ones. `whole`: the job's cluster.
  Json cluster_of(RoleKind kind, const Json& whole) const;
  /// Its samples are shared out over its own GPUs.
  void add(Rlhf& rlhf, Role role) const;

 private:
  const Json* entry_of(RoleKind kind) const;
  /// Whose GPUs, which are not the trainer's, a model shares.
  std::optional<RoleKind> beside_of(RoleKind kind) const;

  const Json* models_;
  const std::string& file_;
};

/// What their groups have beside the job's cluster.
void add_gpus_of(const Rlhf& rlhf, Plan& plan);

}  // namespace shardplan
