// The framework's name: one of the registry's.
#include <vector>

#include "frameworks/registry.h"
#include "options/member.h"
#include "options/tables.h"

namespace shardplan {
namespace {

std::vector<NamedValue> framework_names() {
  std::vector<NamedValue> names;
  for (const FrameworkTraits* traits : all_frameworks())
    names.push_back({.name = traits->name,
                     .value = static_cast<std::int64_t>(traits->kind.get()),
                     .label = traits->label,
                     .also = traits->spoken});
  return names;
}

}  // namespace

const OptionTable<Framework>& framework_name_table() {
  static const std::vector<NamedValue> kNames = framework_names();
  static const std::vector<Option<Framework>> kOptions{option<&Framework::kind>(
      {.key = "name",
       .flag = "--framework",
       .also = "--backend --strategy",
       .switches = "--fsdp=fsdp2 --ddp=ddp",
       .help = "who runs the step",
       .label = "Framework",
       .default_text = "`single` on one GPU, `deepspeed` at stage 3 on several",
       .choices = kNames})};
  static const OptionTable<Framework> kTable{"framework", "", kOptions};
  return kTable;
}

}  // namespace shardplan
