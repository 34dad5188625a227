// The list price of a node that no provider's name was given for.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "hardware/catalog.h"

namespace shardplan {

/// Of the cheapest machine of the catalogue, on demand, with so many of these GPUs; else the share
/// of so many in the machine whose GPUs are cheapest. None where no such GPU has a price.
std::optional<ListPrice> list_price_of(std::string_view gpu, std::int64_t gpus,
                                       const HardwareCatalog& catalog);

}  // namespace shardplan
