#include "frameworks/deepspeed/words.h"

#include <fmt/format.h>

#include <utility>

#include "report/quantity.h"
#include "report/words.h"

namespace shardplan {
namespace {

using report::message;
using report::Text;

Text place_of(OffloadDevice device) {
  return message(device == OffloadDevice::cpu ? "place.host" : "place.nvme");
}

/// What ZeRO++ and MiCS add.
Text with_groups(Text text, const ZeroOptions& zero) {
  const auto add = [&](const char* key) { text = message(key, {{"framework", text}}); };
  const auto over = [&](const char* key, std::int64_t ranks) {
    text = message(key, {{"framework", text}, {"ranks", report::count(ranks)}});
  };
  if (zero.mics()) over("framework.mics", zero.mics_shard_size);
  if (zero.has_secondary()) over("framework.hpz", zero.hpz_partition_size);
  if (zero.stage == 3 && zero.quantized_weights) add("framework.quantized_weights");
  if (zero.stage == 3 && zero.quantized_gradients) add("framework.quantized_gradients");
  return text;
}

}  // namespace

Text deepspeed_words(const Framework& framework) {
  const ZeroOptions& zero = framework.deepspeed.zero;
  Text text =
      with_groups(message("framework.deepspeed", {{"stage", std::to_string(zero.stage)}}), zero);
  const auto add = [&](const char* key, OffloadDevice device) {
    if (device != OffloadDevice::none)
      text = message(key, {{"framework", text}, {"place", place_of(device)}});
  };
  add("framework.offload_optimizer", zero.offload_optimizer.device);
  add("framework.offload_parameters", zero.offload_param.device);
  if (const auto& moe = framework.deepspeed.moe)
    text = message("framework.own_moe",
                   {{"framework", text}, {"factor", fmt::format("{}", moe->capacity_factor)}});
  return text;
}

}  // namespace shardplan
