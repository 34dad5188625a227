// Every record beside what is predicted for it today.
#pragma once

#include <string>

#include "load/hardware.h"
#include "questions/accuracy.h"

namespace shardplan {

inline const Accuracy& all_records() {
  static const Accuracy accuracy = [] {
    const std::string source = SHARDPLAN_SOURCE_DIR;
    const RecordList records =
        load_records({source + "/data/measurements", source + "/tests/golden/training_steps.json"},
                     load_hardware_catalog());
    return compare_with_records(records, AccuracyGroup::framework);
  }();
  return accuracy;
}

}  // namespace shardplan
