#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>

#include "frameworks/registry.h"
#include "model/quantize.h"
#include "questions/changes.h"
#include "questions/compare.h"
#include "questions/serving.h"

namespace shardplan {
namespace {

constexpr std::array<std::pair<std::string_view, Quantization>, 6> kWeights{{
    {"weights as they are", Quantization::none},
    {"weights in fp8", Quantization::fp8},
    {"weights in int8", Quantization::int8},
    {"weights in nf4", Quantization::nf4},
    {"weights in 4 bits (GPTQ)", Quantization::gptq},
    {"weights in 4 bits (AWQ)", Quantization::awq},
}};

}  // namespace

std::vector<Alternative> compare_generation(const Model& model, const Plan& plan,
                                            const Calibration& calibration) {
  std::vector<Alternative> all;
  const auto add = [&](std::string name, Plan changed, bool current = false) {
    Estimate e =
        estimate(stored_as(model, changed.workload.generation.weights), changed, calibration);
    all.push_back({std::move(name), std::move(changed), std::move(e), current});
  };
  const Generation& now = plan.workload.generation;
  const ZeroOptions* zero = zero_options(plan);
  add("as asked", plan, true);
  if (traits_of(plan).quantizes_generation)
    for (const auto& [name, format] : kWeights) {
      if (format == now.weights) continue;
      Plan changed = plan;
      changed.workload.generation.weights = format;
      add(std::string(name), std::move(changed));
    }
  if (!now.injection) {
    Plan changed = plan;
    changed.workload.generation.fp8_cache = !now.fp8_cache;
    add(now.fp8_cache ? "KV cache as the weights compute" : "KV cache in fp8", std::move(changed));
  }
  if (now.engine)
    for (const std::int64_t degree : serving_degrees(model, plan)) {
      if (degree == now.engine->tensor_parallel) continue;
      Plan changed = plan;
      changed.workload.generation.engine->tensor_parallel = degree;
      if (now.engine->expert_parallel > 1)
        changed.workload.generation.engine->expert_parallel = degree;
      add(degree == 1 ? std::string("an engine on each GPU")
                      : fmt::format("an engine over {} GPUs", degree),
          std::move(changed));
    }
  for (const std::int64_t batch : {plan.workload.micro_batch / 2, 2 * plan.workload.micro_batch}) {
    if (batch < 1) continue;
    Plan changed = plan;
    changed.workload.micro_batch = batch;
    add(fmt::format("a batch of {}", batch), std::move(changed));
  }
  const bool streams = zero != nullptr && zero->offload_param.device != OffloadDevice::none;
  if (!now.injection && !now.engine && !streams) {
    Plan changed = plan;
    stream_weights(changed);
    add("weights on the host (ZeRO-Inference)", std::move(changed));
  }
  return all;
}

}  // namespace shardplan
