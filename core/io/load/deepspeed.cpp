#include "load/deepspeed.h"

#include <fmt/format.h>

#include "base/checked.h"
#include "base/format.h"
#include "frameworks/deepspeed/option_table.h"
#include "frameworks/registry.h"
#include "load/options.h"
#include "optimizers/description.h"
#include "parallel/degrees.h"

namespace shardplan {

std::optional<DeepSpeedMoe> read_moe(ObjectReader& framework) {
  const Json* value = framework.find("moe");
  if (value == nullptr) return std::nullopt;
  ObjectReader o(*value, framework.file(), framework.path_of("moe"));
  DeepSpeedMoe moe;
  read_options(o, kDeepSpeedMoeTable, moe);
  o.finish();
  return moe;
}

std::optional<Diagnostic> about_flat_gradients(const ObjectReader& job, const Job& read) {
  const Plan& plan = read.plan;
  const DeepSpeedOptions& d = plan.framework.deepspeed;
  const bool flat = plan.optimizer.kind->deepspeed.fused && !d.program_makes_optimizer() &&
                    !d.torch_adam && size_of(plan.precision.params) == 2;
  if (!traits_of(plan).has_zero || d.zero.stage != 0 || !flat) return std::nullopt;
  constexpr std::int64_t kBytes = 4;  // of an element of the copy
  const std::int64_t more = checked_mul(kBytes, read.model.trainable_count());
  return Diagnostic{.severity = Severity::note,
                    .file = job.file(),
                    .key = "zero_optimization.stage",
                    .message = fmt::format(
                        "at stage 0 DeepSpeed's own Adam copies all gradients in fp32 into "
                        "one vector in each step, at least {} more than the optimizer takes that a "
                        "trainer makes where the file has no \"optimizer\" (runtime/fp16, "
                        "fused_optimizer.py and unfused_optimizer.py)",
                        format_bytes(more))};
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
