#include "load/stored_weights.h"

#include <array>
#include <string_view>

#include <nlohmann/json.hpp>

namespace shardplan {
namespace {

struct Method {
  std::string_view name;
  Quantization format;
  std::int64_t bits;
};

constexpr std::array kMethods{
    Method{"mxfp4", Quantization::mxfp4, 4}, Method{"fp8", Quantization::fp8, 8},
    Method{"gptq", Quantization::gptq, 4}, Method{"awq", Quantization::awq, 4}};

}  // namespace

std::optional<StoredWeights> stored_weights(const Json& config) {
  const auto said = config.find("quantization_config");
  if (said == config.end() || !said->is_object()) return std::nullopt;
  const auto method = said->find("quant_method");
  if (method == said->end() || !method->is_string()) return std::nullopt;
  StoredWeights stored{.method = *method, .known = false};
  const auto bits = said->find("bits");
  for (const Method& m : kMethods) {
    if (m.name != stored.method) continue;
    if (bits != said->end() && bits->is_number_integer() && *bits != m.bits) continue;
    stored.format = m.format;
    stored.known = true;
  }
  return stored;
}

}  // namespace shardplan
