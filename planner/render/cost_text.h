// What a plan costs, in words and as JSON.
#pragma once

#include <string>

#include "json/document.h"
#include "questions/cost.h"

namespace shardplan {

/// Indented lines; "" when the step time is unknown.
std::string cost_lines(const Cost& cost, const Cluster& cluster);

/// null where something is not known.
Json cost_json(const Cost& cost, const Cluster& cluster);

/// "1,234", "12.3", "0.0123": an amount of money, without a currency.
std::string money(double amount);

}  // namespace shardplan
