#include "job/read_save.h"

#include "job/engine_job.h"

namespace shardplan::validator {
namespace {

[[noreturn]] void refuse(const EngineJob& job, const char* key, const char* message,
                         const char* expected) {
  throw InputError({.file = job.file, .key = key, .message = message, .expected = expected});
}

}  // namespace

SaveOptions read_save(ObjectReader& run) {
  SaveOptions save;
  auto o = run.object("save");
  if (!o) return save;
  save.folder = o->text("path").value_or("");
  save.every = o->integer("every", 1, 1'000'000'000).value_or(0);
  const std::string form = o->choice("form", {"sharded", "whole", "both"}).value_or("sharded");
  save.sharded = form != "whole";
  save.whole = form != "sharded";
  save.whole_states = o->boolean("whole_states").value_or(false);
  if (save.whole_states && !save.whole)
    o->fail("whole_states", "a sharded checkpoint has them anyway", "form whole or both with it");
  if (!save.wanted()) o->fail("path", "no folder is named", "a folder, here or with --save");
  o->finish();
  return save;
}

void check_save(const EngineJob& job) {
  const SaveOptions& save = job.run.save;
  if (save.whole && std::holds_alternative<MlpSpec>(job.network))
    refuse(job, "run.save.form", "a perceptron has no names in Hugging Face's files", "sharded");
}

}  // namespace shardplan::validator
