// What is found in the job's ds_config, row by row: the linter's findings, what each key costs, and
// what "auto" became.
#pragma once

#include <QCoreApplication>
#include <QString>
#include <vector>

#include "lint/lint.h"
#include "models/answer.h"
#include "models/rows_model.h"

namespace shardplan::gui {

struct Finding {
  QString severity, key, message;
  QString costs;   ///< of the key: "GPU +1.14 GiB, time +8 %"; "" when it was not priced
  QString fix;     ///< what cures it, in words
  QString detail;  ///< all there is to say, as HTML
  Severity level = Severity::note;
  std::vector<Edit> edits;  ///< of the ds_config; empty: a person must choose
};

class Findings {
  Q_DECLARE_TR_FUNCTIONS(Findings)

 public:
  /// Of a job without a ds_config: what its own reader says.
  static std::vector<Finding> of(const Answer& a);
  static std::vector<Finding> of(const LintReport& report);
  /// "1 error, 2 warnings, 3 notes; 38.9 GiB of each GPU as it is", or why nothing was priced.
  static QString summary(const LintReport& report);
  static RowsModel<Finding>* model(QObject* parent);

 private:
  static QString severity(Severity level);
  static QString delta(const PriceDelta& delta);
  static QString message_of(const LintFinding& finding);
  static Finding row_of(const LintFinding& finding, const KeyCost* cost);
  static Finding row_of(const KeyCost& cost);
};

}  // namespace shardplan::gui
