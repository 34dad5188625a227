#include "front_ends.h"

#include <nlohmann/json.hpp>
#include <string>

#include "base/checked.h"
#include "base/diagnostic.h"
#include "estimate/estimate.h"
#include "json/document.h"
#include "load/calibration.h"
#include "load/cluster.h"
#include "load/ds_config/load.h"
#include "load/hardware.h"
#include "load/job.h"
#include "load/model_config.h"
#include "lowering/segments.h"
#include "model/architectures/registry.h"
#include "save/estimate.h"

namespace shardplan {
namespace {

const HardwareCatalog& hardware() {
  static const HardwareCatalog catalog = load_hardware_catalog();
  return catalog;
}

template <typename Call>
void swallow_bad_input(Call&& call) {
  try {
    call();
  } catch (const InputError&) {
  } catch (const OverflowError&) {
  }
}

}  // namespace

void run_job(std::string_view text) {
  swallow_bad_input([&] {
    JobContext context;
    context.hardware = &hardware();
    context.directory = "/nowhere";
    const Job job = load_job(parse_json(text, "job.json"), "job.json", context);
    const Calibration calibration = load_calibration();
    to_json(estimate(job.model, job.plan, calibration), job).dump();
  });
}

void run_model_config(std::string_view text) {
  swallow_bad_input([&] {
    const ModelConfig config = load_model_config(parse_json(text, "config.json"), "config.json");
    Plan plan;
    plan.workload.sequence_length = 16;
    for (const AttentionKind attention : {AttentionKind::sdpa, AttentionKind::eager}) {
      const Model model = build_model(config, {.attention = attention});
      model.parameter_count();
      run_segments(model, plan);
    }
  });
}

void run_ds_config(std::string_view text) {
  swallow_bad_input([&] {
    const Json config = parse_json(text, "ds_config.json");
    for (const AutoResolver resolver :
         {AutoResolver::hf_trainer, AutoResolver::accelerate, AutoResolver::none}) {
      for (const std::int64_t ranks : {1, 8}) {
        DsConfigContext context;
        context.world_size = ranks;
        context.hidden_size = 4096;
        context.auto_resolver = resolver;
        check_ds_config(config, "ds_config.json", context);
      }
    }
  });
}

void run_cluster(std::string_view text) {
  swallow_bad_input([&] {
    const bool object = !text.empty() && text.front() == '{';
    const Json json = object ? parse_json(text, "cluster.json") : Json(std::string(text));
    load_cluster(json, "cluster.json", "", hardware()).world();
  });
}

}  // namespace shardplan
