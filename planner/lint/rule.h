// One rule of the linter: what it is called, why it is one, where that is written and what to do.
#pragma once

#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "lint/edit.h"

namespace shardplan {

/// The edits of the ds_config that cure a finding of the rule; empty where a person must choose.
using Repair = std::vector<Edit> (*)(const Diagnostic& finding, const Json& document);

struct Rule {
  RuleId id;
  Severity severity = Severity::error;
  std::string_view title;        ///< a sentence without a full stop
  std::string_view explanation;  ///< what happens, and why that is bad
  std::string_view source;       ///< the code or the page that says so
  std::string_view fix;
  Repair repair = nullptr;
};

}  // namespace shardplan
