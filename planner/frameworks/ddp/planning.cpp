// PyTorch's DistributedDataParallel.
#include "calibrate/step_fits.h"
#include "frameworks/usual_planning.h"
#include "report/words.h"

namespace shardplan {
namespace {

report::Text ddp_words(const Framework& framework) {
  return report::message(framework.ddp.zero_redundancy_optimizer ? "framework.ddp_zero_redundancy"
                                                                 : "framework.ddp");
}

void ddp_strategies(std::vector<Strategy>& all, const Plan& base, std::span<const std::int64_t>) {
  Framework framework = usual::own_or_default(base, FrameworkKind::ddp);
  framework.ddp.zero_redundancy_optimizer = false;
  all.push_back({"DDP", framework});
  framework.ddp.zero_redundancy_optimizer = true;
  all.push_back({"DDP, split optimizer", framework});
}

PeerJob ddp_peers(const Plan&) {
  PeerJob job;
  job.accelerate = true;
  return job;
}

}  // namespace

extern const FrameworkPlanning kDdpPlanning;
constinit const FrameworkPlanning kDdpPlanning{
    .kind = FrameworkKind::ddp,
    .words = ddp_words,
    .group = usual::group,
    .own_format = nullptr,
    .formats = usual::trainer_formats,
    .accelerate = usual::accelerate_block,
    .launch = usual::trainer_launch,
    .write_options = usual::write_options,
    .inline_files = usual::nothing_inlined,
    .is_searched = true,
    .strategies = ddp_strategies,
    .rules = usual::no_rules,
    .take_degree = usual::no_degree,
    .take_precision = usual::no_precision,
    .take_offloads = usual::no_offloads,
    .tries_offloads = true,
    .can_offload = false,
    .needs_pipeline_module = false,
    .balances = std::span<const StageBalance>{},
    .moves_to_zero = true,
    .offers_adapters = true,
    .lighter = usual::no_changes,
    .offloads = usual::no_offload_changes,
    .peers = ddp_peers,
    .fit = &kDdpSteps,
    .fits_host = false,
};

}  // namespace shardplan
