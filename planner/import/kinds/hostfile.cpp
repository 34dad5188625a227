// "worker-1 slots=8": how many processes run on each machine.
#include <fmt/format.h>

#include "import/keys.h"
#include "import/kinds/kind.h"

namespace shardplan::importing::hostfile {
namespace {

bool is_hostfile(const Document& d) {
  return has_any(d, {"hostfile"}) && d.value.size() == 1;
}

void read(const Document& d, Recipe& recipe) {
  const Json& hosts = d.value.at("hostfile");
  Key key(d, "hostfile", hosts, "", recipe);
  if (!hosts.is_object() || hosts.empty()) key.refuse("has no hosts", "worker-1 slots=8");
  const Json& slots = hosts.front();
  for (const auto& [name, count] : hosts.items()) {
    if (!count.is_number_integer() || count < 1)
      key.refuse(fmt::format("'{}' has no slots", name), "slots=8");
    if (count != slots)
      key.refuse(
          fmt::format("'{}' has {} slots, the first machine {}", name, count.dump(), slots.dump()),
          "machines alike: others are not estimated");
  }
  recipe.machines = static_cast<std::int64_t>(hosts.size());
  recipe.per_machine = slots.get<std::int64_t>();
  key.took(fmt::format("{} machines of {} GPUs", hosts.size(), slots.dump()));
}

}  // namespace

extern const Kind kKind;
const Kind kKind{"hostfile", "a hostfile", is_hostfile, read};

}  // namespace shardplan::importing::hostfile
