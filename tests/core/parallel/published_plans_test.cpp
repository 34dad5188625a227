// transformers' tensor-parallel plans (tests/golden/tensor_parallel_plans.json) beside the rules.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <map>

#include "json/document.h"
#include "load/model_config.h"
#include "model/architectures/registry.h"
#include "parallel/cuts.h"
#include "support/plan_testing.h"

namespace shardplan::published_plans_test {
namespace {

Json golden(const char* name) {
  return read_json_file(fmt::format("{}/tests/golden/{}", SHARDPLAN_SOURCE_DIR, name));
}

TEST(PublishedPlans, AreKnownOrSaidNotToBe) {
  for (const auto& [type, plan] : golden("tensor_parallel_plans.json").at("plans").items()) {
    if (type == "llama4" || type == "gemma4_vision") continue;  // of what is beside the text
    EXPECT_EQ(plan_state(type) == PlanState::none, plan.is_null() || plan.empty()) << type;
  }
}

/// "model.layers.{}.mlp.up_proj.weight" in a plan of "layers.*.mlp.up_proj".
Cut published(const Json& plan, const std::string& tensor) {
  static const std::map<std::string, Cut> kCuts{{"colwise", Cut::column},
                                                {"rowwise", Cut::row},
                                                {"colwise_gather_output", Cut::column_gathered},
                                                {"rowwise_split_input", Cut::row_sliced},
                                                {"replicated_with_grad_allreduce", Cut::summed}};
  for (const auto& [module, style] : plan.items()) {
    const std::string end = module.substr(module.find('*') + 1);
    if (tensor.ends_with(end + ".weight")) return kCuts.at(style.get<std::string>());
  }
  return Cut::whole;
}

TEST(PublishedPlans, OfDenseNetworksCutTheSameModules) {
  const Json configs = golden("family_configs.json"), plans = golden("tensor_parallel_plans.json");
  for (const char* type :
       {"apertus", "arcee", "cohere2", "cwm", "ernie4_5", "exaone4", "gemma4_unified_text",
        "granite", "hyperclovax", "jais2", "ministral", "olmo3", "seed_oss", "smollm3"})
    for (const auto& [name, config] : configs.items()) {
      if (config.at("model_type") != type || name.ends_with("_default")) continue;
      const Model model =
          build_model(load_model_config(config, "config.json"), {.counts_only = true});
      Plan plan;
      plan.parallel.tensor = 2;
      const Cuts cuts(model, plan, SplitStyle::transformers);
      for (std::size_t i = 0; i < model.parameters.size(); ++i) {
        const Parameter& p = model.parameters[i];
        // Tables and heads are in the plans of the classes.
        if (p.kind == ParameterKind::embedding || !p.name.starts_with("model.")) continue;
        if (!p.name.ends_with(".weight")) continue;
        EXPECT_EQ(cuts.of(static_cast<ParameterId>(i)),
                  published(plans.at("plans").at(type), p.name))
            << name << ' ' << p.name;
      }
    }
}

}  // namespace
}  // namespace shardplan::published_plans_test
