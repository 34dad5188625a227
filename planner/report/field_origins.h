// Where a job's fields come from: its text, a trainer's file or its ds_config said them, or nobody.
#pragma once

#include <string_view>

#include "json/document.h"
#include "report/findings.h"
#include "report/report.h"

namespace shardplan::report {

class FieldOrigins {
 public:
  explicit FieldOrigins(const Findings& findings);

  /// Of the field at `pointer`, which the job's list of what it left open calls `name`.
  Text of(std::string_view pointer, std::string_view name) const;
  /// Whether that is nobody's word.
  bool assumed(std::string_view pointer, std::string_view name) const;

 private:
  bool in_ds_config(std::string_view pointer) const;

  const Findings& findings_;
  Json document_;  ///< null where the job has no text
};

}  // namespace shardplan::report
