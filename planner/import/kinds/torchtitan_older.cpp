#include "import/kinds/torchtitan_older.h"

#include <array>
#include <string>
#include <string_view>

namespace shardplan::importing {
namespace {

struct MovedKey {
  std::string_view before, now;
};

constexpr std::array kRenamed{
    MovedKey{"training.data_parallel_degree", "parallelism.data_parallel_shard_degree"},
    MovedKey{"training.data_parallel_shard_degree", "parallelism.data_parallel_shard_degree"},
    MovedKey{"training.data_parallel_replicate_degree",
             "parallelism.data_parallel_replicate_degree"},
    MovedKey{"training.tensor_parallel_degree", "parallelism.tensor_parallel_degree"},
    MovedKey{"training.disable_loss_parallel", "parallelism.disable_loss_parallel"},
    MovedKey{"experimental.enable_async_tensor_parallel",
             "parallelism.enable_async_tensor_parallel"},
    MovedKey{"experimental.enable_compiled_autograd", "parallelism.enable_compiled_autograd"},
    MovedKey{"experimental.context_parallel_degree", "parallelism.context_parallel_degree"},
    MovedKey{"experimental.context_parallel_rotate_method",
             "parallelism.context_parallel_rotate_method"},
    MovedKey{"experimental.pipeline_parallel_degree", "parallelism.pipeline_parallel_degree"},
    MovedKey{"experimental.pipeline_parallel_schedule", "parallelism.pipeline_parallel_schedule"},
    MovedKey{"experimental.pipeline_parallel_schedule_csv",
             "parallelism.pipeline_parallel_schedule_csv"},
};

/// Puts `value` at "block.key", said where the file has `before`.
void put(Document& d, std::string_view path, Json value, std::string_view before) {
  const std::size_t point = path.find('.');
  d.value[std::string(path.substr(0, point))][std::string(path.substr(point + 1))] =
      std::move(value);
  d.elsewhere[std::string(path)] = {d.file, d.positions.find(before).line, std::string(before)};
}

void erase(Document& d, std::string_view path) {
  const std::size_t point = path.find('.');
  d.value[std::string(path.substr(0, point))].erase(std::string(path.substr(point + 1)));
}

/// A pipeline cut the batch into so many micro-batches, as many as it has stages where nothing was
/// said; now it is said how large one is.
void size_micro_batches(Document& d) {
  constexpr std::string_view kCount = "experimental.pipeline_parallel_microbatches";
  const std::int64_t stages = integer_at(d, "experimental.pipeline_parallel_degree").value_or(1);
  const std::int64_t batch = integer_at(d, "training.batch_size").value_or(8);
  const std::int64_t count = integer_at(d, kCount).value_or(stages);
  if (stages <= 1 || count < 1 || batch % count != 0) return;
  put(d, "parallelism.pipeline_parallel_microbatch_size", batch / count, kCount);
  if (integer_at(d, kCount)) erase(d, kCount);
}

void take_float8(Document& d) {
  constexpr std::string_view kBefore = "float8.enable_float8_linear";
  const Json* asked = value_below(d.value, kBefore);
  if (asked == nullptr || *asked != true) return;
  put(d, "model.converters", Json::array({"float8"}), kBefore);
  erase(d, kBefore);
}

}  // namespace

Document with_present_names(Document d) {
  size_micro_batches(d);
  for (const MovedKey& key : kRenamed) {
    const Json* said = value_below(d.value, key.before);
    if (said == nullptr || value_below(d.value, key.now) != nullptr) continue;
    put(d, key.now, Json(*said), key.before);
    erase(d, key.before);
  }
  take_float8(d);
  return d;
}

}  // namespace shardplan::importing
