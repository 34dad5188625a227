#include "parallel/communicators.h"

#include "frameworks/registry.h"
#include "parallel/communicator_list.h"

namespace shardplan {
namespace {

/// inference/engine.py: nothing is opened for one GPU.
void add_injected(CommunicatorList& list, const KernelInjection& injection) {
  if (injection.tensor_parallel == 1) return;
  list.add("world", list.world(), GroupUse::collectives);
  list.add("tensor", {injection.tensor_parallel, 1}, GroupUse::collectives);
}

}  // namespace

std::vector<Communicator> communicators(const Plan& plan, std::int64_t rank) {
  CommunicatorList list(plan, rank);
  const auto& injection = plan.workload.generation.injection;
  if (plan.workload.kind == WorkKind::inference && injection) {
    add_injected(list, *injection);
  } else {
    traits_of(plan).communicators(list, plan);
  }
  return list.take();
}

std::int64_t foreign_contexts(const Plan& plan) {
  return traits_of(plan).foreign_contexts(plan);
}

}  // namespace shardplan
