// What the fuzzers call: each front end on bytes from anywhere. Bad input is InputError or
// OverflowError and is swallowed here; everything else gets out and is a bug.
#pragma once

#include <string_view>

namespace shardplan {

void run_job(std::string_view text);           ///< a job file, through to the estimate as JSON
void run_model_config(std::string_view text);  ///< a config.json, through to its tapes
void run_ds_config(std::string_view text);     ///< a ds_config.json, under every resolver of "auto"
void run_cluster(std::string_view text);       ///< a cluster's name or its object

}  // namespace shardplan
