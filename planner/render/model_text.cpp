#include "render/model_text.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "render/table.h"

namespace shardplan {
namespace {

constexpr std::array<std::string_view, 6> kKindNames{"embedding", "linear", "norm",
                                                     "bias",      "expert", "other"};

std::string indexed(std::string name, std::int64_t index) {
  const auto at = name.find("{}");
  return at == std::string::npos ? name : name.replace(at, 2, fmt::format("{}", index));
}

/// Calls visit(name, parameter, count): every tensor, or one for each repeated group.
template <typename Visit>
void for_each_line(const Model& model, bool every, Visit&& visit) {
  for (const ParameterGroup& group : model.groups) {
    const std::int64_t rounds = every ? group.repeat : 1;
    for (std::int64_t r = 0; r < rounds; ++r) {
      for (std::int32_t i = group.first; i < group.first + group.count; ++i) {
        const Parameter& p = model.parameters[static_cast<std::size_t>(i)];
        visit(every ? indexed(p.name, group.start + r) : p.name, p, every ? 1 : group.repeat);
      }
    }
  }
}

}  // namespace

std::string model_text(const Model& model, bool every) {
  std::string text =
      fmt::format("{}: {} parameters ({}) in {} tensors\n",
                  model.facts.name.empty() ? model.facts.model_type : model.facts.name,
                  format_count(model.parameter_count()), format_parameters(model.parameter_count()),
                  format_count(model.tensor_count()));
  const ModelFacts& f = model.facts;
  if (f.hidden > 0)
    text += fmt::format(
        "  {}: {} layers, hidden {}, {} heads ({} for keys and values), vocabulary {}\n",
        f.model_type, f.layers, f.hidden, f.attention_heads, f.key_value_heads, f.vocabulary);
  text += fmt::format("  its weights take {} in fp32, {} in bf16 or fp16\n\n",
                      format_bytes(4 * model.parameter_count()),
                      format_bytes(2 * model.parameter_count()));
  TextTable table({Align::left, Align::left, Align::right, Align::right});
  table.add({"tensor", "shape", "times", "parameters"});
  for_each_line(model, every, [&](const std::string& name, const Parameter& p, std::int64_t count) {
    table.add({name, fmt::format("[{}]", fmt::join(p.shape, ", ")), format_count(count),
               format_count(p.numel * count)});
  });
  text += table.text();
  for (const std::string& a : f.assumed) text += fmt::format("  assumed: {}\n", a);
  return text;
}

Json model_json(const Model& model, bool every) {
  Json json;
  json["name"] = model.facts.name;
  json["model_type"] = model.facts.model_type;
  json["parameters"] = model.parameter_count();
  json["trainable_parameters"] = model.trainable_count();
  json["tensors"] = model.tensor_count();
  json["layers"] = model.facts.layers;
  json["hidden_size"] = model.facts.hidden;
  json["vocabulary"] = model.facts.vocabulary;
  Json list = Json::array();
  for_each_line(model, every, [&](const std::string& name, const Parameter& p, std::int64_t count) {
    list.push_back(Json{{"name", name},
                        {"shape", p.shape},
                        {"kind", kKindNames[static_cast<std::size_t>(p.kind)]},
                        {"count", count},
                        {"parameters", p.numel * count},
                        {"trainable", p.trainable}});
  });
  json["groups"] = std::move(list);
  json["assumed"] = model.facts.assumed;
  return json;
}

}  // namespace shardplan
