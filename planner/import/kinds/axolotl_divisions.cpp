#include "import/kinds/axolotl_divisions.h"

#include "import/fsdp.h"
#include "import/vocabulary.h"

namespace shardplan::importing::axolotl {

/// setup_fsdp_envs: what is not said is accelerate's.
constexpr FsdpDialect kAxolotlFsdp{1, "false", "NO_PREFETCH", "TRANSFORMER_BASED_WRAP"};

void read_fsdp(Key& key) {
  std::string words;
  if (key.value().is_array() || key.value().is_string())
    for (const std::string& word : key.list()) words += word + " ";
  if (words.empty()) return key.ignore("empty");
  const Json* block = key.other("fsdp_config");
  read_fsdp_block(key, block == nullptr ? Json::object() : *block, words, kAxolotlFsdp);
}

void read_fsdp_config(Key& key) {
  const Json* fsdp = key.other("fsdp");
  if (fsdp != nullptr && !fsdp->is_null() && !fsdp->empty()) return key.took("with fsdp");
  if (key.value().empty()) return key.ignore("empty");
  read_fsdp_block(key, key.value(), "", kAxolotlFsdp);
}

void read_version(Key& key) {
  key.took("of fsdp_config");
}

/// Ring attention of its own (monkeypatch/ring_attn), which gathers keys and values head by head.
void read_context_degree(Key& key) {
  if (key.integer(1) <= 1) return key.ignore("not divided");
  if (key.other("deepspeed") != nullptr && key.other("deepspeed")->is_string()) {
    key.recipe().set("/parallel/sequence", key.integer(1), key.origin());
    return key.warn("is estimated as DeepSpeed's Ulysses, which exchanges queries too");
  }
  key.recipe().set("/parallel/context", key.integer(1), key.origin());
  key.warn("is estimated as PyTorch's context_parallel, which keeps more");
}

/// Weights that are no experts' are whole on each rank of the degree, or sharded over the others
/// alone (integrations/expert_parallel/plugin.py).
void read_expert_degree(Key& key) {
  if (key.integer(1) <= 1) return key.ignore("no expert parallelism");
  key.refuse(
      "axolotl's experts beside weights that all ranks of the degree have whole are not "
      "estimated",
      "1");
}

void read_degree(Key& key) {
  const std::int64_t degree = key.integer(1);
  if (degree == 1) return key.ignore("1: not divided");
  key.take(degree);
}

}  // namespace shardplan::importing::axolotl
