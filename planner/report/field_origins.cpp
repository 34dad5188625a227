#include "report/field_origins.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "report/words.h"

namespace shardplan::report {
namespace {

/// "/workload/micro_batch": "workload.micro_batch".
std::string dotted(std::string_view pointer) {
  std::string name(pointer.substr(1));
  std::replace(name.begin(), name.end(), '/', '.');
  return name;
}

/// Whether a line is about the field: "micro-batch: 1".
bool lists(const std::vector<std::string>& lines, std::string_view field) {
  return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
    return line.size() > field.size() && line.starts_with(field) && line[field.size()] == ':';
  });
}

/// Keys of a ds_config that say a field, any of them.
struct DsConfigKeys {
  std::string_view pointer;
  std::array<const char*, 3> keys;
};

constexpr std::array kOfDsConfig{
    DsConfigKeys{"/precision", {"bf16", "bfloat16", "fp16"}},
    DsConfigKeys{"/optimizer", {"optimizer", "", ""}},
    DsConfigKeys{"/workload/micro_batch",
                 {"train_micro_batch_size_per_gpu", "train_batch_size", ""}},
    DsConfigKeys{"/workload/gradient_accumulation",
                 {"gradient_accumulation_steps", "train_batch_size", ""}},
};

}  // namespace

FieldOrigins::FieldOrigins(const Findings& findings) : findings_(findings) {
  const Origin& origin = findings.origin;
  if (!origin.job.empty()) document_ = parse_json(origin.job, origin.name);
}

bool FieldOrigins::assumed(std::string_view pointer, std::string_view name) const {
  return lists(findings_.job.assumed, name) ||
         lists(findings_.origin.taken_for_granted, dotted(pointer));
}

bool FieldOrigins::in_ds_config(std::string_view pointer) const {
  const Json& config = findings_.job.ds_config;
  if (!config.is_object()) return false;
  return std::ranges::any_of(kOfDsConfig, [&](const DsConfigKeys& row) {
    return row.pointer == pointer && std::ranges::any_of(row.keys, [&](const char* key) {
             return config.contains(key) && config.at(key) != "auto";
           });
  });
}

Text FieldOrigins::of(std::string_view pointer, std::string_view name) const {
  if (assumed(pointer, name)) return message("origin.assumed");
  const bool said =
      document_.is_null() || document_.contains(Json::json_pointer(std::string(pointer)));
  if (said) return message("origin.given");
  return message(in_ds_config(pointer) ? "origin.ds_config" : "origin.default");
}

}  // namespace shardplan::report
