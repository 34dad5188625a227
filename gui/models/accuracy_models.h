// Predictions against the records of measured runs, as tables.
#pragma once

#include <QCoreApplication>
#include <QString>
#include <vector>

#include "models/rows_model.h"
#include "questions/accuracy.h"

namespace shardplan::gui {

/// One figure over all records, or over those of a framework.
struct SummaryRow {
  QString group, figure, records, mean, signed_mean, largest, worst;
  QString hint;
  double mean_error = 0;
};

/// One figure of one record.
struct RecordRow {
  QString record, framework, figure, predicted, measured, error;
  QString hint;  ///< how the error is made of the two
  double relative = 0;
};

class AccuracyModels {
  Q_DECLARE_TR_FUNCTIONS(AccuracyModels)

 public:
  static RowsModel<SummaryRow>* summary_model(QObject* parent);
  static RowsModel<RecordRow>* record_model(QObject* parent);
  static std::vector<SummaryRow> summaries(const Accuracy& accuracy);
  /// The peaks and the step time of every record, worst first.
  static std::vector<RecordRow> records(const Accuracy& accuracy);

 private:
  static QString figure_name(Figure figure);
};

}  // namespace shardplan::gui
