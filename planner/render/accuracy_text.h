// The answer of `shardplan accuracy`.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "json/document.h"
#include "questions/accuracy.h"

namespace shardplan {

/// Tables of errors: groups by figure, the worst records, other programs' rules. `details` adds
/// every figure of every record.
std::string accuracy_text(const Accuracy& accuracy, bool details);

/// shardplan.accuracy/1: records with predicted, measured and error of every figure, and all
/// summaries. Errors are fractions.
Json accuracy_json(const Accuracy& accuracy);

/// One line a record and figure: record, framework, model, precision, figure, predicted, measured,
/// delta, error.
std::string accuracy_csv(const Accuracy& accuracy);

}  // namespace shardplan
