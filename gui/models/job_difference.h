// What differs between two jobs, field by field: what an undo takes back, and what a dropped file
// changes.
#pragma once

#include <QCoreApplication>
#include <QString>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "json/document.h"

namespace shardplan::gui {

/// A field that one job says otherwise than the other; null where it leaves it open.
struct FieldDifference {
  std::string pointer;  ///< "/workload/micro_batch"
  Json before, after;
};

/// In the order of the fields' names; an object that only one of the jobs has is one field.
std::vector<FieldDifference> differences(const Json& before, const Json& after);

class JobDifference {
  Q_DECLARE_TR_FUNCTIONS(JobDifference)

 public:
  /// "workload.micro_batch", as messages of the loader name a field.
  static QString name_of(const FieldDifference& difference);
  /// "workload.micro_batch: 2 → 4"; "not given" for a field that is left open.
  static QString words_of(const FieldDifference& difference);
  /// "workload.micro_batch", or with how many others: the text of an undo.
  static QString summary(const std::vector<FieldDifference>& differences);
};

}  // namespace shardplan::gui
