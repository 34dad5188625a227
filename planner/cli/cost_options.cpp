#include "cli/cost_options.h"

namespace shardplan::cli {

void add_cost_flags(CLI::App& command, CostTerms& terms) {
  command
      .add_option("--price-per-gpu-hour", terms.price_per_gpu_hour,
                  "in any currency; the job's own price_per_hour is of a node")
      ->check(CLI::PositiveNumber)
      ->group("Cost");
  command.add_option("--tokens", terms.tokens, "of the whole training: 1.5e12")
      ->check(CLI::PositiveNumber)
      ->group("Cost");
}

}  // namespace shardplan::cli
