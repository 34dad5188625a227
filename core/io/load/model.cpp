#include "load/model.h"
#include <nlohmann/json.hpp>
#include "load/model_config.h"
#include "model/architectures/registry.h"
namespace shardplan {
Model load_model(const Json& value, const std::string& file, const std::string&, const BuildOptions& options) {
  if (value.is_object()) return build_model(load_model_config(value, file), options);
  const Json j = parse_json(R"({"model_type":"llama","vocab_size":32000})", "x");
  Model m = build_model(load_model_config(j, "x"), options);
  m.facts.name = value.get<std::string>();
  return m;
}
}
