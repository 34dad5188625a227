// Keys that are there and do nothing.
#include "lint/repairs.h"
#include "lint/rules/families.h"

namespace shardplan {
namespace {

constexpr Rule kRules[] = {
    {"ds.no-effect-at-stage"_rule, Severity::warning, "A key without effect at this ZeRO stage",
     "It differs from its default, and nothing reads it at this stage: whoever wrote it expected "
     "something that does not happen.",
     "data/deepspeed/schema.json, from deepspeed/runtime/zero/*.py",
     "Remove it, or use a stage that reads it.", repair::remove_it},
    {"ds.swap-key-unread"_rule, Severity::note, "A key that only NVMe offload reads",
     "The block offloads to host memory; buffers and paths of the NVMe swapper are not used.",
     "deepspeed/runtime/swap_tensor", "Remove it, or offload to nvme."},
    {"ds.aio-unread"_rule, Severity::warning, "An aio block without NVMe offload",
     "Nothing is swapped, so its settings are never used by training.",
     "deepspeed/runtime/swap_tensor/aio_config.py", "Remove it, or offload to nvme.",
     repair::remove_it},
};

}  // namespace

std::span<const Rule> unread_rules() {
  return kRules;
}

}  // namespace shardplan
