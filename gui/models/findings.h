// What is found in the job's ds_config: mistakes, warnings, and what "auto" became.
#pragma once

#include <QCoreApplication>
#include <QString>
#include <vector>

#include "models/answer.h"
#include "models/rows_model.h"

namespace shardplan::gui {

struct Finding {
  QString severity, key, message;
  Severity level = Severity::note;
};

class Findings {
  Q_DECLARE_TR_FUNCTIONS(Findings)

 public:
  static std::vector<Finding> of(const Answer& a);
  static RowsModel<Finding>* model(QObject* parent);
};

}  // namespace shardplan::gui
