#include "lowering/lower.h"

namespace shardplan {

Program lower(const Model& model, const Plan& plan, const ModelRun& run, std::int64_t rank) {
  switch (plan.framework.kind) {
    case FrameworkKind::single:
    case FrameworkKind::ddp:
      return lower_data_parallel(model, plan, run);
    case FrameworkKind::deepspeed:
      return lower_deepspeed(model, plan, run, rank);
    case FrameworkKind::fsdp2:
      return lower_fsdp2(model, plan, run);
    case FrameworkKind::native:
      return lower_native(model, plan, run);
  }
  return {};
}

}  // namespace shardplan
