#include "load/deepspeed.h"

#include <fmt/format.h>

#include "parallel/degrees.h"

namespace shardplan {

std::optional<DeepSpeedMoe> read_moe(ObjectReader& framework) {
  const Json* value = framework.find("moe");
  if (value == nullptr) return std::nullopt;
  ObjectReader o(*value, framework.file(), framework.path_of("moe"));
  DeepSpeedMoe moe;
  moe.capacity_factor = o.number("capacity_factor", 1e-3, 1e6).value_or(1.0);
  moe.min_capacity = o.integer("min_capacity", 0, std::int64_t{1} << 31).value_or(4);
  moe.drop_tokens = o.boolean("drop_tokens").value_or(true);
  o.finish();
  return moe;
}

bool calls_deepspeed_checkpointing(ObjectReader& framework) {
  return framework.choice("checkpoint_function", {"torch", "deepspeed"}) == "deepspeed";
}

std::optional<Diagnostic> check_deepspeed_checkpointing(const ObjectReader& job, const Job& read) {
  const Plan& plan = read.plan;
  const DeepSpeedCheckpointing& block = plan.framework.deepspeed.activation_checkpointing;
  constexpr const char* kFunction = "framework.checkpoint_function";
  constexpr const char* kBlock = "framework.ds_config.activation_checkpointing";
  if (!block.called) {
    if (!block.partition_activations && !block.cpu_checkpointing) return std::nullopt;
    return Diagnostic{.severity = Severity::warning,
                      .file = job.file(),
                      .key = kBlock,
                      .message =
                          "has no effect on blocks that torch checkpoints, as Hugging "
                          "Face's are",
                      .expected = fmt::format("{} \"deepspeed\", where the model calls "
                                              "deepspeed.checkpointing",
                                              kFunction)};
  }
  if (plan.checkpointing != Checkpointing::full)
    job.fail(kFunction,
             fmt::format("deepspeed, with checkpointing '{}': it runs whole blocks again",
                         name_of(plan.checkpointing)),
             "checkpointing full, or torch");
  const std::int64_t blocks = block_count(read.model);
  if (block.contiguous_memory_optimization && block.number_checkpoints.value_or(0) < blocks)
    job.fail(fmt::format("{}.number_checkpoints", kBlock),
             fmt::format("{} buffers, and the {} blocks each want one",
                         block.number_checkpoints.value_or(0), blocks),
             fmt::format("{}", blocks));
  return std::nullopt;
}

}  // namespace shardplan
