#include "import/kinds/axolotl_offloading.h"

#include "import/vocabulary.h"
#include "job/fields.h"

namespace shardplan::importing::axolotl {
namespace {

/// core/builders/base.py, loaders/model.py (_apply_activation_checkpointing): TRL's offloader in
/// the place of recomputation beside adapters, and around it without. Where it would meet weights
/// that are sharded, which is not estimated, the inputs of checkpointed blocks stand for what it
/// sends.
void take_offloader(Key& key, const char* how) {
  const Json* adapter = key.other("adapter");
  const bool adapts = adapter != nullptr && !adapter->is_null();
  const bool shards = key.other("fsdp_config") != nullptr || key.other("fsdp") != nullptr ||
                      key.other("deepspeed") != nullptr;
  if (shards && !adapts)
    return key.take("/checkpointing", Json{{"policy", "full"}, {"offload", true}});
  set_field(key.recipe().job, "/checkpointing", adapts ? "none" : "full");
  key.take("/activation_offloading", how);
}

bool offloads(const Json* value) {
  return value != nullptr && (value->is_string() || *value == true);
}

}  // namespace

void read_offloading(Key& key) {
  if (!offloads(&key.value())) return key.ignore("off");
  const Json* blocks = key.other("gradient_checkpointing");
  if (!offloads(blocks))
    key.refuse("axolotl stops: \"activation_offloading requires gradient_checkpointing\"",
               "gradient_checkpointing: true beside it");
  if (key.value() == "hidden_states")
    return key.take("/checkpointing", Json{{"policy", "full"}, {"offload", true}});
  take_offloader(key, key.value() == "legacy" ? "one_stream" : "streams");
}

/// "offload" is an earlier word for activation_offloading (utils/schemas/validation.py).
void read_blocks(Key& key) {
  if (offloads(key.other("activation_offloading")))
    return key.ignore("activation_offloading says more");
  if (key.value().is_string() && key.text().starts_with("offload"))
    return take_offloader(key, "streams");
  read_checkpointing(key);
}

}  // namespace shardplan::importing::axolotl
