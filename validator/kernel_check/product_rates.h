// What the engine's matrix products cost, apart: the host to start one, and the GPU to compute it.
#pragma once

#include <string>

namespace shardplan::validator {

/// A record of rates, as JSON. Products of a rank's adapters and experts, beside wide ones.
std::string product_rates_record();

}  // namespace shardplan::validator
