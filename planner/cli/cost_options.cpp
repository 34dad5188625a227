#include "cli/cost_options.h"

#include <fmt/format.h>

#include "base/quantity.h"

namespace shardplan::cli {

CLI::Validator positive_number() {
  return CLI::Validator(
      [](std::string& text) {
        const auto amount = parse_quantity(text);
        if (!amount || *amount <= 0) return "found '" + text + "'; expected a positive number";
        text = fmt::format("{}", *amount);
        return std::string();
      },
      "POSITIVE");
}

void add_cost_flags(CLI::App& command, CostTerms& terms) {
  command
      .add_option("--price-per-gpu-hour", terms.price_per_gpu_hour,
                  "in any currency; --price is of a node")
      ->transform(positive_number())
      ->group("Cost");
}

}  // namespace shardplan::cli
