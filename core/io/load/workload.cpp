#include "load/workload.h"

#include "base/nearest.h"
#include "load/generation.h"
#include "load/lengths.h"
#include "load/options.h"
#include "options/tables.h"

namespace shardplan {
namespace {

/// "qlora" is LoRA over a base in 4 bits, as its paper quantizes it, unless the job says another.
bool says_qlora(ObjectReader& workload) {
  const auto method = workload.text("method");
  return method && normalized(*method) == "qlora";
}

void read_lora(ObjectReader& object, Workload& workload) {
  workload.lora.emplace();
  static const Json kNothing = Json::object();
  const Json* value = object.find("lora");
  ObjectReader lora(value == nullptr ? kNothing : *value, object.file(), object.path_of("lora"));
  read_options(lora, lora_table(), workload);
  // peft's way to adapt weights of experts and no module.
  const Json* targets = lora.find("targets");
  if (targets != nullptr && targets->empty() && !workload.lora->parameters.empty())
    workload.lora->targets.clear();
  if (says_qlora(object) && lora.find("quantization") == nullptr)
    workload.lora->base = Quantization::nf4_double;
  lora.finish();
}

Workload read_training(ObjectReader& w, const std::string& directory) {
  Workload workload;
  workload.micro_batch = workload.sequence_length = workload.gradient_accumulation = 0;  // open
  read_options(w, training_table(), workload);
  workload.lengths = read_lengths(w, directory);
  if (read_as<int>(w, info_of(training_table(), "method")).value_or(0) != 0) {
    read_lora(w, workload);
  } else if (w.find("lora") != nullptr) {
    w.fail("lora", "given, but the method is full", "\"method\": \"lora\"");
  }
  return workload;
}

}  // namespace

Workload read_workload(ObjectReader& job, const std::string& directory) {
  static const Json kEmpty = Json::object();
  const Json* value = job.find("workload");
  ObjectReader w(value == nullptr ? kEmpty : *value, job.file(), job.path_of("workload"));
  Workload any;
  read_said(w, kind_option_table(), any);
  Workload workload =
      any.kind == WorkKind::inference ? read_generation(w) : read_training(w, directory);
  workload.tokens = any.tokens;
  w.finish();
  return workload;
}

}  // namespace shardplan
