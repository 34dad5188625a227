#include "export/optimizer_words.h"

#include <array>

#include "load/optimizer.h"
#include "optimizers/description.h"

namespace shardplan {
namespace {

struct WrittenOptimizer {
  std::string_view name, implementation, word;
};

constexpr std::array kWrittenOptimizers{
    WrittenOptimizer{"adamw", "fused", "adamw_torch_fused"},
    WrittenOptimizer{"adamw", "foreach", "adamw_torch"},
    WrittenOptimizer{"adamw_8bit", "", "adamw_bnb_8bit"},
    WrittenOptimizer{"paged_adamw", "", "paged_adamw_32bit"},
    WrittenOptimizer{"paged_adamw_8bit", "", "paged_adamw_8bit"},
    WrittenOptimizer{"adamw_4bit", "", "adamw_torch_4bit"},
    WrittenOptimizer{"adafactor", "", "adafactor"},
    WrittenOptimizer{"lion", "", "lion_32bit"},
    WrittenOptimizer{"sgd", "foreach", "sgd"},
    WrittenOptimizer{"adagrad", "foreach", "adagrad"},
};

}  // namespace

std::string_view transformers_optimizer(const Plan& plan) {
  std::string_view name = plan.optimizer.kind->name;
  if (name == "adafactor_transformers") name = "adafactor";  // what Trainer makes of it
  const std::string_view how = name_of(plan.optimizer.implementation);
  for (const WrittenOptimizer& word : kWrittenOptimizers)
    if (word.name == name && (word.implementation.empty() || word.implementation == how))
      return word.word;
  return "";
}

}  // namespace shardplan
