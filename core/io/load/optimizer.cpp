#include "load/optimizer.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "base/nearest.h"

namespace shardplan {
namespace {

constexpr std::array<std::pair<std::string_view, OptimizerKind>, 9> kKinds{{
    {"adamw", OptimizerKind::adamw},
    {"adam", OptimizerKind::adam},
    {"sgd", OptimizerKind::sgd},
    {"adagrad", OptimizerKind::adagrad},
    {"adafactor", OptimizerKind::adafactor},
    {"lion", OptimizerKind::lion},
    {"lamb", OptimizerKind::lamb},
    {"adamw_8bit", OptimizerKind::adamw_8bit},
    {"muon", OptimizerKind::muon},
}};

constexpr std::array<std::pair<std::string_view, OptimizerImplementation>, 3> kImplementations{{
    {"fused", OptimizerImplementation::fused},
    {"foreach", OptimizerImplementation::foreach},
    {"for-loop", OptimizerImplementation::for_loop},
}};

template <typename Table>
std::vector<std::string> names_of(const Table& table) {
  std::vector<std::string> names;
  for (const auto& row : table) names.emplace_back(row.first);
  return names;
}

template <typename Table>
auto value_of(const Table& table, std::string_view name) {
  for (const auto& row : table)
    if (row.first == name) return row.second;
  return table.front().second;
}

}  // namespace

std::string_view name_of(OptimizerKind kind) {
  for (const auto& [name, value] : kKinds)
    if (value == kind) return name;
  return "";
}

std::string_view name_of(OptimizerImplementation implementation) {
  for (const auto& [name, value] : kImplementations)
    if (value == implementation) return name;
  return "";
}

Optimizer load_optimizer(ObjectReader& job) {
  Optimizer optimizer;
  const Json* value = job.find("optimizer");
  if (value == nullptr) return optimizer;
  if (value->is_string()) {
    optimizer.kind = value_of(kKinds, *job.choice("optimizer", names_of(kKinds)));
    return optimizer;
  }
  ObjectReader o(*value, job.file(), job.path_of("optimizer"));
  if (const auto name = o.choice("name", names_of(kKinds)))
    optimizer.kind = value_of(kKinds, *name);
  if (const auto how = o.choice("implementation", names_of(kImplementations)))
    optimizer.implementation = value_of(kImplementations, *how);
  optimizer.momentum = o.number("momentum", 0, 1).value_or(0);
  optimizer.amsgrad = o.boolean("amsgrad").value_or(false);
  for (const auto* key : {"lr", "weight_decay", "eps"}) o.number(key);
  o.find("betas");
  o.finish();
  return optimizer;
}

Optimizer deepspeed_optimizer(std::string_view type, const std::string& file) {
  Optimizer optimizer;
  const std::string name = normalized(type);
  if (name == "adam" || name == "adamw" || name == "torchadam") return optimizer;
  const std::array<std::pair<std::string_view, OptimizerKind>, 11> kTypes{{
      {"onebitadam", OptimizerKind::adam},
      {"zerooneadam", OptimizerKind::adam},
      {"onebitlamb", OptimizerKind::lamb},
      {"lamb", OptimizerKind::lamb},
      {"lion", OptimizerKind::lion},
      {"adagrad", OptimizerKind::adagrad},
      {"sgd", OptimizerKind::sgd},
      {"muon", OptimizerKind::muon},
      {"muadam", OptimizerKind::adam},
      {"muadamw", OptimizerKind::adamw},
      {"musgd", OptimizerKind::sgd},
  }};
  for (const auto& [known, kind] : kTypes) {
    if (known != name) continue;
    optimizer.kind = kind;
    return optimizer;
  }
  throw InputError({.file = file,
                    .key = "optimizer.type",
                    .message = fmt::format("the memory of optimizer '{}' is not known", type),
                    .expected = "Adam, AdamW, Lamb, Lion, Adagrad, SGD, Muon or a 1-bit variant"});
}

}  // namespace shardplan
