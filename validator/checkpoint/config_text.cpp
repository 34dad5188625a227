#include "checkpoint/config_text.h"

#include <array>
#include <cassert>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <variant>

#include "load/model.h"

namespace shardplan::validator {
namespace {

/// model_type and transformers' class.
constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kClasses{
    {{"gpt2", "GPT2LMHeadModel"},
     {"llama", "LlamaForCausalLM"},
     {"mistral", "MistralForCausalLM"},
     {"qwen2", "Qwen2ForCausalLM"},
     {"qwen3", "Qwen3ForCausalLM"},
     {"mixtral", "MixtralForCausalLM"},
     {"qwen3_moe", "Qwen3MoeForCausalLM"}}};

std::string_view class_of(std::string_view family) {
  for (const auto& [type, name] : kClasses)
    if (type == family) return name;
  assert(false);  // read_spec() knows no other
  return "";
}

std::string_view torch_name(DType dtype) {
  switch (dtype) {
    case DType::bf16:
      return "bfloat16";
    case DType::f16:
      return "float16";
    default:
      return "float32";
  }
}

}  // namespace

std::string config_text(const EngineJob& job) {
  const auto found = find_config(job.document.at("model"), {job.file, "model", job.directory});
  assert(found);  // the network was read from it
  Json config = found->config;
  config["architectures"] = {class_of(std::get<DecoderSpec>(job.network).family)};
  // The weights are of one type, whatever those that the configuration came with were.
  config.erase("quantization_config");
  config.erase("dtype");
  config["torch_dtype"] = torch_name(job.training.dtype);  // transformers 4 and 5 read this one
  return config.dump(2) + "\n";
}

std::string adapter_config_text(const EngineJob& job) {
  const Lora& lora = *job.plan().workload.lora;
  const Json& model = job.document.at("model");
  const bool all = lora.targets.size() == 1 && lora.targets.front() == "all-linear";
  const Json config{{"peft_type", "LORA"},
                    {"task_type", "CAUSAL_LM"},
                    {"base_model_name_or_path", model.is_string() ? model : Json()},
                    {"r", lora.rank},
                    {"lora_alpha", job.run.lora_alpha.value_or(static_cast<double>(lora.rank))},
                    {"use_rslora", lora.rank_stabilized},
                    {"lora_dropout", 0.0},
                    {"bias", "none"},
                    {"fan_in_fan_out", std::get<DecoderSpec>(job.network).family == "gpt2"},
                    {"target_modules", all ? Json("all-linear") : Json(lora.targets)},
                    {"target_parameters", lora.parameters.empty() ? Json() : Json(lora.parameters)},
                    {"inference_mode", true}};
  return config.dump(2) + "\n";
}

}  // namespace shardplan::validator
