#include "calibrate/calibrate.h"

namespace shardplan {

CalibrationFit calibrate(const std::vector<RateRecord>& records, const std::vector<Record>& steps,
                         const Gpu& gpu, TimeRates rates) {
  CalibrationFit fit;
  fit.rates = rates;
  std::vector<KernelRow> kernels;
  std::vector<LinkRow> links;
  std::vector<HostRow> hosts;
  for (const RateRecord& r : records) {
    kernels.insert(kernels.end(), r.kernels.begin(), r.kernels.end());
    links.insert(links.end(), r.links.begin(), r.links.end());
    hosts.insert(hosts.end(), r.hosts.begin(), r.hosts.end());
  }
  if (!kernels.empty()) fit.rates.kernels.product.burst = 1;  // these ran back to back
  fit_products(kernels, gpu, fit);
  fit_attention(kernels, gpu, fit);
  fit_memory(kernels, gpu, fit);
  fit_links(links, gpu, fit);
  fit_burst(hosts, gpu, fit);
  fit_host(hosts, fit);
  fit_frameworks(steps, hosts, fit);
  return fit;
}

}  // namespace shardplan
