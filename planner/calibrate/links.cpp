// Collectives within a node, and copies to the host.
#include <cmath>

#include "calibrate/calibrate.h"
#include "calibrate/fit.h"
#include "timing/collective_time.h"

namespace shardplan {
namespace {

Collective collective_of(const std::string& form) {
  if (form == "all_gather") return Collective::all_gather;
  return form == "reduce_scatter" ? Collective::reduce_scatter : Collective::all_reduce;
}

}  // namespace

void fit_links(const std::vector<LinkRow>& rows, const Gpu& gpu, CalibrationFit& fit) {
  LinkRates& links = fit.rates.links;
  std::vector<const LinkRow*> collectives;
  for (const LinkRow& row : rows) {
    // Smaller ones, timed from Python, show how long it takes to ask for them.
    constexpr std::int64_t kBandwidthBound = 4'000'000;
    if (row.ranks > 1 && row.bytes >= kBandwidthBound) collectives.push_back(&row);
    if (row.form == "pinned" && gpu.pcie_bandwidth)
      links.host = static_cast<double>(row.bytes) / row.seconds / *gpu.pcie_bandwidth;
  }
  if (collectives.empty() || !gpu.nvlink_bandwidth) return;
  const auto logarithms = [&] {
    std::vector<double> all;
    for (const LinkRow* row : collectives) {
      Cluster node;
      node.gpu = gpu;
      node.gpus_per_node = row->ranks;
      node.intra_node_bandwidth = *gpu.nvlink_bandwidth;
      Event e;
      e.kind = Event::Kind::collective;
      e.collective = collective_of(row->form);
      e.bytes = row->bytes;
      all.push_back(std::log(collective_seconds(e, {}, node, links) / row->seconds));
    }
    return all;
  };
  fit_positive({&links.node, &links.seconds}, logarithms);
  fit.quality.push_back(
      {"collectives within a node", collectives.size(), mean_error(logarithms())});
}

}  // namespace shardplan
