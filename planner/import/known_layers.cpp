#include "import/known_layers.h"

#include "load/model.h"

namespace shardplan::importing {

std::int64_t known_layers(const Recipe& recipe, const Document& document) {
  const Json* model = recipe.has_model ? &recipe.asked_model : recipe.find("/model");
  if (model == nullptr) return 0;
  const std::string directory = recipe.has_model ? "" : recipe.directory;
  const auto found = find_config(*model, {document.file, "model", directory});
  if (!found || !found->config.is_object()) return 0;
  const auto text = found->config.find("text_config");
  const Json& config = text != found->config.end() && text->is_object() ? *text : found->config;
  return config.value("num_hidden_layers", std::int64_t{0});
}

}  // namespace shardplan::importing
