#include "export/optimizer_words.h"

#include "load/optimizer.h"
#include "optimizers/description.h"
#include "optimizers/trainer_words.h"

namespace shardplan {

std::string_view transformers_optimizer(const Plan& plan) {
  std::string_view name = plan.optimizer.kind->name;
  if (name == "adafactor_transformers") name = "adafactor";  // what Trainer makes of it
  const std::string_view how = name_of(plan.optimizer.implementation);
  for (const OptimizerWord& word : kOptimizerWords)
    if (word.written && word.name == name &&
        (word.implementation.empty() || word.implementation == how))
      return word.word;
  return "";
}

}  // namespace shardplan
