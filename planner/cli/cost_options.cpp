#include "cli/cost_options.h"

namespace shardplan::cli {

CLI::Validator positive_number() {
  return CLI::Validator(
      [](std::string& text) {
        double value = 0;
        const bool good = CLI::detail::lexical_cast(text, value) && value > 0;
        return good ? std::string() : "found '" + text + "'; expected a positive number";
      },
      "POSITIVE");
}

void add_cost_flags(CLI::App& command, CostTerms& terms) {
  command
      .add_option("--price-per-gpu-hour", terms.price_per_gpu_hour,
                  "in any currency; the job's own price_per_hour is of a node")
      ->check(positive_number())
      ->group("Cost");
  command.add_option("--tokens", terms.tokens, "of the whole training: 1.5e12")
      ->check(positive_number())
      ->group("Cost");
}

}  // namespace shardplan::cli
