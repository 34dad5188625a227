// Our own engine.
#include "base/diagnostic.h"
#include "frameworks/planning_registry.h"
#include "frameworks/usual_planning.h"
#include "report/words.h"

namespace shardplan {
namespace {

report::Text native_words(const Framework&) {
  return report::message("framework.native");
}

std::vector<const ExportFormat*> native_formats(const Plan&) {
  return {&kJobFormat};
}

void native_strategies(std::vector<Strategy>&, const Plan&, std::span<const std::int64_t>) {
  throw InputError({.key = "--frameworks",
                    .message = "the native engine cannot be searched",
                    .expected = searchable_words()});
}

}  // namespace

extern const FrameworkPlanning kNativePlanning;
constinit const FrameworkPlanning kNativePlanning{
    .kind = FrameworkKind::native,
    .words = native_words,
    .group = usual::group,
    .own_format = nullptr,
    .formats = native_formats,
    .accelerate = usual::accelerate_block,
    .launch = usual::trainer_launch,
    .write_options = usual::write_options,
    .inline_files = usual::nothing_inlined,
    .is_searched = false,
    .strategies = native_strategies,
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
    .peers = usual::no_peers,
    .fit = nullptr,
    .fits_host = false,
};

}  // namespace shardplan
