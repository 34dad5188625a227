#include "hardware/prices.h"

#include <tuple>

namespace shardplan {
namespace {

/// `gpus` of the machine's, at their share of its price; more than it has: as many machines' worth.
ListPrice share_of(const ListPrice& machine, std::int64_t gpus) {
  ListPrice price = machine;
  const double share = static_cast<double>(gpus) / static_cast<double>(machine.gpus);
  price.on_demand *= share;
  if (price.spot) *price.spot *= share;
  price.of_gpus = gpus;
  price.same_machine = false;
  return price;
}

}  // namespace

std::optional<ListPrice> list_price_of(std::string_view gpu, std::int64_t gpus,
                                       const HardwareCatalog& catalog) {
  std::optional<ListPrice> best;
  const auto order = [&](const ListPrice& p) { return std::tuple(p.gpus != gpus, p.on_demand); };
  for (const Instance& row : catalog.instances) {
    if (row.gpu != gpu || !row.price) continue;
    ListPrice price = share_of(*row.price, gpus);
    if (const auto network = row.gpu_network ? row.gpu_network : row.network)
      price.network = *network / static_cast<double>(row.gpus);
    if (!best || order(price) < order(*best)) best = price;
  }
  return best;
}

}  // namespace shardplan
