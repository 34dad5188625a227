// The launcher's part of a command: torchrun, deepspeed, accelerate launch.
#include <array>

#include "import/kinds/kind.h"
#include "import/vocabulary.h"

namespace shardplan::importing::launcher {
namespace {

bool is_launcher(const Document& d) {
  for (const char* name : {"torchrun", "deepspeed", "accelerate", "python", "python3"})
    if (d.program == name) return true;
  return false;
}

void read_per_machine(Key& key) {
  if (!key.value().is_number()) return key.ignore("not a number");
  key.recipe().per_machine = key.integer(1);
  key.took("GPUs of each machine");
}

void read_nodes(Key& key) {
  if (!key.value().is_number()) return key.ignore("not a number");
  key.recipe().machines = key.integer(1);
  key.took("machines");
}

void read_all_processes(Key& key) {
  if (!key.value().is_number()) return key.ignore("not a number");
  key.recipe().processes = key.integer(1);
  key.took("GPUs in all");
}

constexpr std::array kRules{
    KeyRule{"nproc_per_node", "", read_per_machine},
    KeyRule{"num_gpus", "", read_per_machine},
    KeyRule{"nnodes", "", read_nodes},
    KeyRule{"num_nodes", "", read_nodes},
    KeyRule{"num_machines", "", read_nodes},
    KeyRule{"num_processes", "", read_all_processes},
    KeyRule{"mixed_precision", "", read_mixed_precision},
};
const std::array kIgnored{IgnoredKeys{"how processes find each other", {"*"}}};
constexpr KeyTable kOwn{kRules, kIgnored};

void read(const Document& d, Recipe& recipe) {
  read_keys(d, {&kOwn}, recipe);
}

}  // namespace

extern const Kind kKind;
const Kind kKind{"launcher", "a launcher's arguments", is_launcher, read};

}  // namespace shardplan::importing::launcher
