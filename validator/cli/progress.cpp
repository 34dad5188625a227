#include "cli/progress.h"

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

namespace shardplan::validator {

Json start_event(const EngineJob& job, const Estimate& predicted) {
  const ModelFacts& facts = job.job.model.facts;
  Json expected{{"allocated_peak", predicted.allocated.point}};
  if (!job.on_host()) {
    expected["device"] = predicted.device.point;
    if (predicted.time.step_seconds > 0) expected["step_seconds"] = predicted.time.step_seconds;
  }
  return {{"event", "start"},
          {"model", facts.name.empty() ? facts.model_type : facts.name},
          {"parameters", job.job.model.parameter_count()},
          {"ranks", job.plan().cluster.world()},
          {"zero_stage", job.plan().framework.native.zero_stage},
          {"device", job.on_host() ? "host" : "cuda"},
          {"steps", job.run.steps},
          {"warmup", job.run.warmup},
          {"predicted", expected}};
}

Json step_event(const EngineJob& job, const StepProgress& progress) {
  const StepResult& s = progress.result;
  return {{"event", "step"},
          {"step", progress.index + 1},
          {"steps", job.run.steps},
          {"loss", s.loss},
          {"gradient_norm", s.gradient_norm},
          {"learning_rate", s.learning_rate},
          {"skipped", s.skipped},
          {"dropped", s.dropped},
          {"seconds", s.seconds},
          {"allocated_peak", progress.peak_bytes},
          {"allocated", progress.live_bytes}};
}

Json saved_event(const SaveReport& save) {
  return {{"event", "saved"},
          {"folder", save.folder},
          {"bytes", save.all_files},
          {"seconds", save.seconds}};
}

Json error_event(const std::string& message, int exit_code) {
  return {{"event", "error"}, {"message", message}, {"exit_code", exit_code}};
}

void print_event(const Json& event) {
  fmt::print("{}\n", event.dump());
  std::fflush(stdout);
}

}  // namespace shardplan::validator
