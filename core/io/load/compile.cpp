#include "load/compile.h"

#include "load/options.h"
#include "options/tables.h"

namespace shardplan {

std::optional<Compile> read_compile(ObjectReader& job) {
  const Json* said = job.find("compile");
  if (said == nullptr) return std::nullopt;
  if (said->is_boolean())
    return said->get<bool>() ? std::optional<Compile>(Compile{}) : std::nullopt;
  if (!said->is_object())
    job.fail("compile", "found " + describe(*said),
             "false, true, or an object with mode and scope");
  ObjectReader object(*said, job.file(), job.path_of("compile"));
  Plan plan;
  plan.compile.emplace();
  read_options(object, compile_table(), plan);
  object.finish();
  return plan.compile;
}

}  // namespace shardplan
