// A model's config.json.
#include "import/keys.h"
#include "import/kinds/kind.h"

namespace shardplan::importing::hf_config {
namespace {

bool is_hf_config(const Document& d) {
  return !d.is_command() && has_any(d, {"model_type", "architectures"}) &&
         !has_any(d, {"base_model", "peft_type"});
}

void read(const Document& d, Recipe& recipe) {
  Key key(d, "model_type", d.value, "", recipe);
  key.take("/model", d.value);
}

}  // namespace

extern const Kind kKind;
const Kind kKind{"hf_config", "a model's config.json", is_hf_config, read};

}  // namespace shardplan::importing::hf_config
