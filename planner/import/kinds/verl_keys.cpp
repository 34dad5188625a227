#include "import/kinds/verl_keys.h"

#include <string>

#include "import/vocabulary.h"

namespace shardplan::importing::verl {

bool is_on(const Key& block, const char* name) {
  return block.other_is_true(block.path() + "." + name);
}

void read_rank(Key& key) {
  if (key.integer(0) == 0) return key.ignore("0: no adapters");
  read_lora_rank(key);
}

void read_targets(Key& key) {
  const std::string path = key.path();
  const Json* rank = key.other(path.substr(0, path.rfind('.') + 1) + "lora_rank");
  if (rank == nullptr || *rank == 0) return key.ignore("no adapters");
  read_lora_targets(key);
}

void read_mtp(Key& key) {
  if (is_on(key, "enable"))
    key.refuse("prediction of several tokens (mtp.enable) is not estimated", "enable: false");
  key.ignore("off");
}

void warn_of_tiles(Key& key) {
  if (is_on(key, "enabled"))
    key.warn("blocks' feed-forward in tiles keeps less than is estimated");
  else
    key.ignore("off");
}

void read_tiles(Key& key) {
  if (!is_on(key, "enabled")) return key.ignore("off");
  const Json* count = key.other(key.path() + ".num_shards");
  key.take("/mlp_tiles", count != nullptr ? *count : Json(4));  // config/model/hf_model.yaml
}

void read_activation_offload(Key& key) {
  if (!key.flag()) return key.ignore("off");
  key.warn("activations on the host are estimated as kept on the GPU, which is more");
}

}  // namespace shardplan::importing::verl
