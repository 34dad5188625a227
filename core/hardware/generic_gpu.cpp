#include "hardware/generic_gpu.h"

#include <fmt/format.h>

#include <cstdlib>
#include <tuple>

#include "base/units.h"

namespace shardplan {
namespace {

/// The order of likeness: nearest memory, of two as near the smaller, then the slower.
auto rank(const CatalogGpu& row, std::int64_t memory_gb) {
  return std::tuple(std::abs(row.memory_gb - memory_gb), row.memory_gb,
                    row.gpu.peak[PeakRate::fp16].value_or(0), row.gpu.memory_bandwidth.value_or(0));
}

}  // namespace

Gpu generic_gpu(std::int64_t memory_gb, const HardwareCatalog& catalog,
                std::vector<std::string>& notes) {
  const CatalogGpu* like = nullptr;
  for (const CatalogGpu& row : catalog.gpus)
    if (!row.rare && (like == nullptr || rank(row, memory_gb) < rank(*like, memory_gb)))
      like = &row;
  Gpu gpu;
  if (like != nullptr) gpu = like->gpu;
  const std::string model = gpu.name;
  gpu.name = fmt::format("{}GB", memory_gb);
  gpu.capacity = Bytes(checked_mul(memory_gb, kGiB));
  gpu.usable = typical_usable(catalog, memory_gb);
  gpu.usable_source = Source::assumed;
  gpu.nvlink_bandwidth.reset();
  gpu.nvlink_pairs_only = false;
  gpu.nvlink_link.clear();
  gpu.achievable = {};
  gpu.full_watts.reset();
  gpu.unverified = {
      "memory_driver_mib", "memory_usable_gib", "memory_bandwidth_gbs", "tflops_dense", "pcie",
      "tdp_watts"};
  gpu.note = fmt::format("a GPU of no particular make with {} GB", memory_gb);
  notes.push_back(fmt::format(
      "{}GB names no GPU: {:.1f} GiB are assumed to be usable ({:.1f} % of the size, as on most "
      "GPUs; cards with GDDR and ECC have up to 9 % less)",
      memory_gb, gpu.usable.gib(), 100 * typical_usable_ratio(catalog)));
  if (!model.empty()) {
    notes.push_back(fmt::format("its rates are assumed to be those of {}, without NVLink", model));
  }
  return gpu;
}

}  // namespace shardplan
