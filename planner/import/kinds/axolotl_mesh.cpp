#include "import/kinds/axolotl_mesh.h"

namespace shardplan::importing::axolotl {
namespace {

bool has_fsdp(const Key& key) {
  return key.other("fsdp_config") != nullptr || key.other("fsdp") != nullptr;
}

std::int64_t other_integer(const Key& key, std::string_view path) {
  const Json* value = key.other(path);
  return value != nullptr && value->is_number_integer() ? value->get<std::int64_t>() : 1;
}

}  // namespace

/// utils/distributed.py (_get_parallel_config_kwargs): ranks that are left over hold copies.
/// accelerate's mesh divides states over its shard and context dimensions together.
void read_shard_size(Key& key) {
  const std::int64_t size = key.integer(1);
  if (size == 1) return key.ignore("all GPUs divide the states");
  if (!has_fsdp(key)) key.refuse("axolotl stops: nothing divides states", "fsdp_config beside it");
  key.recipe().set("/framework/hybrid_shard_size",
                   size * other_integer(key, "context_parallel_size"), key.origin());
  key.took("framework.hybrid_shard_size");
}

void read_copies(Key& key) {
  if (key.integer(1) == 1) return key.ignore("one copy of the states");
  if (!has_fsdp(key)) return key.ignore("each GPU has all states");
  if (other_integer(key, "dp_shard_size") == 1)
    key.refuse("how many GPUs divide a copy of the states is not said", "dp_shard_size beside it");
  key.ignore("what dp_shard_size leaves");
}

}  // namespace shardplan::importing::axolotl
