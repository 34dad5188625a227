// What only all files together say, part by part: each part's file is named after it.
#pragma once

#include <cstdint>
#include <string>

#include "hardware/catalog.h"
#include "import/recipe.h"
#include "kernels/registry.h"
#include "load/hardware.h"
#include "trainers/registry.h"

namespace shardplan::importing {

/// A recipe on its way to a job, and the fields that the command line sets.
class Finisher {
 public:
  Finisher(Recipe& recipe, const Json& flags) : recipe_(recipe), flags_(flags) {}

  Json finish();

 private:
  const Json* said(const char* key) const;
  [[noreturn]] void ask(std::string key, std::string message, std::string expected,
                        std::string near = "") const;
  std::string framework() const;
  std::string model_type() const;
  const TrainerDescription& trainer() const;

  void take_model();
  void take_tested_optimizers();
  void take_pages();
  void take_images();
  void refuse_storage() const;
  void take_lora();
  void name_linears();

  // finish_cluster.cpp
  void take_cluster();
  void drop_group_of_all();
  void take_framework();

  // finish_precision.cpp
  void take_precision();
  bool freezes_in(const std::string& half) const;
  void set_precision(const std::string& name, std::string why);
  void under_deepspeed(const std::string& half);
  void take_moved_weights();
  static const Json* value_below_block(const Json& config, const char* block, const char* key);

  // finish_batch.cpp
  std::int64_t degree(const char* name) const;
  void fill_budget(std::int64_t each, std::int64_t whole);
  void take_batch();

  // finish_kernels.cpp
  bool compiles_kernels() const;
  void take_compile();
  void take_kernels();
  void take_no_kernels(const LigerPatch& patch);
  void choose_kernels(const LigerPatch& patch);
  static bool takes(const LigerPatch& patch, const std::string& name);

  // finish_algorithm.cpp
  void take_algorithm();
  std::string reference_precision(const Json& workload) const;
  void leave_out_losses();

  Recipe& recipe_;
  const Json& flags_;
  const HardwareCatalog hardware_ = load_hardware_catalog();
  std::int64_t world_ = 1;
};

}  // namespace shardplan::importing
