#include "model/architectures/counted.h"

#include "model/architectures/registry.h"

namespace shardplan {

Model joined(Model outer, Model text) {
  const auto parameters = static_cast<std::int32_t>(outer.parameters.size());
  const auto modules = static_cast<std::int32_t>(outer.modules.size());
  for (Parameter& p : text.parameters) {
    p.module += modules;
    outer.parameters.push_back(std::move(p));
  }
  for (Module& m : text.modules) {
    for (ParameterId& id : m.parameters) id += parameters;
    outer.modules.push_back(std::move(m));
  }
  for (ParameterGroup group : text.groups) {
    group.first += parameters;
    outer.groups.push_back(group);
  }
  const auto shared = static_cast<std::int32_t>(outer.shared.size());
  const auto segments = static_cast<std::int32_t>(outer.segments.size());
  for (Segment& s : text.segments) {
    s.graph.renumber(modules, parameters, shared);
    outer.segments.push_back(std::move(s));
  }
  for (Shared& s : text.shared) {
    s.maker += segments;
    outer.shared.push_back(std::move(s));
  }
  outer.facts = std::move(text.facts);
  return outer;
}

void rename_prefix(Model& model, std::string_view from, std::string_view to) {
  const auto rename = [&](std::string& name) {
    if (name.starts_with(from)) name.replace(0, from.size(), to);
  };
  for (Parameter& p : model.parameters) rename(p.name);
  for (Module& m : model.modules) rename(m.name);
}

Model text_inside(const ModelConfig& config, const BuildOptions& options, std::string_view type,
                  bool tied) {
  ModelConfig text = config.inner("text_config").without("architectures");
  text = text.with("tie_word_embeddings", tied).with("model_type", text.text("model_type", type));
  BuildOptions within = options;
  within.inside = true;
  Model model = build_model(text, within);
  if (!options.counts_only) return model;
  model.segments.clear();
  model.shared.clear();
  return model;
}

}  // namespace shardplan
