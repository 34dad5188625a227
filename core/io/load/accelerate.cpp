#include "load/accelerate.h"

#include <fmt/format.h>

#include "json/reader.h"
#include "load/ds_config/values.h"
#include "yaml/document.h"

namespace shardplan {
namespace {

class Reader {
 public:
  explicit Reader(AccelerateConfig& config)
      : document_(config.document), misread_(config.misread) {}

  /// The value, or nullptr, and noted, when it has another type.
  const Json* find(std::string_view path, bool (Json::*is)() const noexcept, const char* expected) {
    const Json* value = value_at(document_, path);
    if (value == nullptr || value->is_null()) return nullptr;
    if ((value->*is)()) return value;
    misread_.push_back({std::string(path), *value, expected});
    return nullptr;
  }

  std::optional<std::int64_t> integer(std::string_view path) {
    const Json* value = find(path, &Json::is_number_integer, "an integer");
    return value == nullptr ? std::nullopt : std::optional(value->get<std::int64_t>());
  }
  std::optional<std::string> text(std::string_view path) {
    const Json* value = find(path, &Json::is_string, "a string");
    return value == nullptr ? std::nullopt : std::optional(value->get<std::string>());
  }
  std::optional<bool> flag(std::string_view path) {
    const Json* value = find(path, &Json::is_boolean, "true or false");
    return value == nullptr ? std::nullopt : std::optional(value->get<bool>());
  }

 private:
  const Json& document_;
  std::vector<MisreadKey>& misread_;
};

/// "no" without quotes is false in YAML, and accelerate writes 'no'.
std::optional<std::string> mixed_precision(Reader& read, const Json& document) {
  const Json* value = value_at(document, "mixed_precision");
  if (value != nullptr && value->is_boolean() && !value->get<bool>()) return std::nullopt;
  return read.text("mixed_precision");
}

}  // namespace

const Json* AccelerateConfig::deepspeed_key(std::string_view name) const {
  return value_at(document, fmt::format("deepspeed_config.{}", name));
}

const Json* AccelerateConfig::fsdp_key(std::string_view name) const {
  return value_at(document, fmt::format("fsdp_config.{}", name));
}

AccelerateConfig read_accelerate(std::string_view text, const std::string& file) {
  AccelerateConfig config;
  config.file = file;
  YamlDocument yaml = parse_yaml(text, file);
  config.document = std::move(yaml.value);
  config.positions = std::move(yaml.positions);
  ObjectReader(config.document, file);  // a mapping, or an error

  Reader read(config);
  config.distributed_type = read.text("distributed_type").value_or("");
  config.processes = read.integer("num_processes");
  config.machines = read.integer("num_machines").value_or(1);
  config.mixed_precision = mixed_precision(read, config.document);
  read.find("deepspeed_config", &Json::is_object, "a mapping");
  config.deepspeed_file = read.text("deepspeed_config.deepspeed_config_file");
  if (const auto stage = read.integer("deepspeed_config.zero_stage"))
    config.zero_stage = static_cast<int>(*stage);
  config.zero3_init =
      read.flag("deepspeed_config.zero3_init_flag").value_or(config.zero_stage == 3);
  return config;
}

Json plugin_ds_config(const AccelerateConfig& config) {
  const auto of = [&](const char* key, Json fallback) {
    const Json* value = config.deepspeed_key(key);
    return value == nullptr || value->is_null() ? std::move(fallback) : *value;
  };
  const auto offload = [&](const char* device_key, const char* path_key) {
    Json block{{"device", of(device_key, "none")}};
    if (block["device"] == "nvme") block["nvme_path"] = of(path_key, nullptr);
    return block;
  };
  Json zero{
      {"stage", of("zero_stage", 2)},
      {"offload_optimizer", offload("offload_optimizer_device", "offload_optimizer_nvme_path")},
      {"offload_param", offload("offload_param_device", "offload_param_nvme_path")},
      {"stage3_gather_16bit_weights_on_model_save", of("zero3_save_16bit_model", false)}};
  Json made{{"train_batch_size", "auto"},
            {"train_micro_batch_size_per_gpu", "auto"},
            {"gradient_accumulation_steps", of("gradient_accumulation_steps", "auto")},
            {"zero_optimization", std::move(zero)},
            {"gradient_clipping", of("gradient_clipping", "auto")},
            {"zero_allow_untested_optimizer", true}};
  if (config.mixed_precision == "fp16") made["fp16"] = Json{{"enabled", true}, {"auto_cast", true}};
  if (config.mixed_precision == "bf16") made["bf16"] = Json{{"enabled", true}};
  return made;
}

}  // namespace shardplan
