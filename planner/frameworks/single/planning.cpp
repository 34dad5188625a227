// Plain PyTorch.
#include "frameworks/usual_planning.h"
#include "report/words.h"

namespace shardplan {
namespace {

report::Text single_words(const Framework&) {
  return report::message("framework.single");
}

void single_strategies(std::vector<Strategy>& all, const Plan& base,
                       std::span<const std::int64_t>) {
  all.push_back({"plain PyTorch", usual::own_or_default(base, FrameworkKind::single)});
}

PeerJob single_peers(const Plan&) {
  PeerJob job;
  job.zero2 = job.accelerate = true;
  return job;
}

}  // namespace

extern const FrameworkPlanning kSinglePlanning;
constinit const FrameworkPlanning kSinglePlanning{
    .kind = FrameworkKind::single,
    .words = single_words,
    .group = usual::group,
    .own_format = nullptr,
    .formats = usual::trainer_formats,
    .accelerate = usual::accelerate_block,
    .launch = usual::trainer_launch,
    .write_options = usual::write_options,
    .inline_files = usual::nothing_inlined,
    .is_searched = true,
    .strategies = single_strategies,
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
    .peers = single_peers,
    .fit = nullptr,
    .fits_host = true,
};

}  // namespace shardplan
