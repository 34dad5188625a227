// Short forms for tests of the ds_config front end.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "load/ds_config/load.h"

namespace shardplan {

inline DsConfigContext on_ranks(std::int64_t ranks) {
  DsConfigContext context;
  context.world_size = ranks;
  return context;
}

/// `text` is an object; a micro-batch is put in where it has no batch key of its own, and the block
/// that accelerate asks for.
inline DsConfigResult checked(const std::string& text,
                              const DsConfigContext& context = on_ranks(8)) {
  Json config = parse_json(text, "ds.json");
  if (!config.contains("train_batch_size") && !config.contains("train_micro_batch_size_per_gpu"))
    config["train_micro_batch_size_per_gpu"] = 1;
  if (context.auto_resolver != AutoResolver::none && !config.contains("zero_optimization"))
    config["zero_optimization"] = Json::object();
  return check_ds_config(config, "ds.json", context);
}

inline DeepSpeedOptions options_of(const std::string& text,
                                   const DsConfigContext& context = on_ranks(8)) {
  return checked(text, context).options;
}

/// The findings of one severity as text, in order.
inline std::vector<std::string> findings_of(const DsConfigResult& result, Severity severity) {
  std::vector<std::string> found;
  for (const Diagnostic& d : result.diagnostics)
    if (d.severity == severity) found.push_back(to_string(d));
  return found;
}

inline std::vector<std::string> errors_of(const std::string& text,
                                          const DsConfigContext& context = on_ranks(8)) {
  return findings_of(checked(text, context), Severity::error);
}

inline std::vector<std::string> warnings_of(const std::string& text,
                                            const DsConfigContext& context = on_ranks(8)) {
  return findings_of(checked(text, context), Severity::warning);
}

inline std::vector<std::string> notes_of(const std::string& text,
                                         const DsConfigContext& context = on_ranks(8)) {
  return findings_of(checked(text, context), Severity::note);
}

/// A pair of configurations: one that breaks a rule once, one that keeps it.
struct RuleCase {
  std::string name;
  std::string broken;
  std::string finding;  ///< part of the only error (or warning) of `broken`
  std::string kept;
};

inline void PrintTo(const RuleCase& rule, std::ostream* out) {
  *out << rule.name;
}

inline std::string name_of_case(const ::testing::TestParamInfo<RuleCase>& info) {
  return info.param.name;
}

}  // namespace shardplan
