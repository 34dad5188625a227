#include "load/compile.h"

#include "load/options.h"
#include "options/tables.h"
#include "trainers/description.h"

namespace shardplan {

std::optional<Compile> read_compile(ObjectReader& job, const TrainerDescription& trainer) {
  const Json* said = job.find("compile");
  if (said == nullptr) return std::nullopt;
  const Compile usual{.scope = trainer.compiles};
  if (said->is_boolean()) return said->get<bool>() ? std::optional(usual) : std::nullopt;
  if (!said->is_object())
    job.fail("compile", "found " + describe(*said),
             "false, true, or an object with mode and scope");
  ObjectReader object(*said, job.file(), job.path_of("compile"));
  Plan plan;
  plan.compile = usual;
  read_options(object, compile_table(), plan);
  object.finish();
  return plan.compile;
}

}  // namespace shardplan
