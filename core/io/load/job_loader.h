// Reads a job of one model, part by part: each part's file is named after it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "json/reader.h"
#include "load/adapters.h"
#include "load/framework.h"
#include "load/job.h"
#include "load/parallel.h"

namespace shardplan {

/// What is read of a job so far, and its plan.
class JobLoader {
 public:
  JobLoader(const Json& json, const std::string& file, const JobContext& context)
      : reader_(json, file), context_(context) {}

  Job load();

 private:
  Plan& plan() { return job_.plan; }
  bool is_inference() const { return job_.plan.workload.kind == WorkKind::inference; }
  void warn(std::string key, std::string message);

  // The job itself, in load's order.
  bool generates_divided() const;
  bool is_served();
  /// An engine's degree is its own.
  void check_degrees() {
    if (!plan().workload.generation.engine) check_parallel(reader_, job_.model, plan());
  }
  std::string_view usual_precision() const;
  void assume_precision();
  void read_cluster();
  void read_model();
  void take_stored_weights(const Json& model);
  bool says_quantization();
  bool take_default_targets(const Json& model, BuildOptions& options);
  bool says_targets();
  void take_injection();

  // job_trainer.cpp
  void take_trainer();
  void widen_divided();
  void assume_cast();

  // job_ds_config.cpp
  void apply_ds_config();
  void say_guesses(const std::vector<ResolvedAuto>& autos);
  void count_checkpoints(DeepSpeedCheckpointing& block);
  static bool says_batch(const Json& ds_config);
  void price_ignored_offload();
  void choose_batch(const DeepSpeedOptions& options);
  void choose_precision(DeepSpeedOptions& options, const Precision& wanted, bool has_precision);

  // job_defaults.cpp
  void assume_micro_batch();
  void assume_generation();
  void take_lengths();
  void fill_defaults();

  // job_checks.cpp
  void check_engine();
  void check_recipe();
  void leave_routers_wide();
  void check_recipe_widths(const ProductRecipe& recipe);
  void check_precision();
  static bool keeps_pages(const OptimizerDescription& optimizer);
  void check_optimizer();

  ObjectReader reader_;
  const JobContext& context_;
  FrameworkRead read_;
  Job job_;
};

}  // namespace shardplan
