// Predictions against the records of measured runs, as tables.
#pragma once

#include <QColor>
#include <QCoreApplication>
#include <QString>
#include <QStringList>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "models/plot/plot.h"
#include "models/rows_model.h"
#include "questions/accuracy.h"
#include "questions/similar_records.h"

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
  QString kind;   ///< the framework's name in job files
  QString about;  ///< model, precision and file: what a filter looks in too
  Figure of = Figure::allocated_peak;
  double predicted_value = 0, measured_value = 0;  ///< bytes or seconds
  std::string name, file;
};

/// Which records are wanted; what is left open lets all through.
struct RecordFilter {
  std::optional<Figure> figure;
  QString kind;
  QString words;                               ///< each of them somewhere in the row
  std::optional<std::set<std::string>> names;  ///< of records
};

class AccuracyModels {
  Q_DECLARE_TR_FUNCTIONS(AccuracyModels)

 public:
  static RowsModel<SummaryRow>* summary_model(QObject* parent);
  static RowsModel<RecordRow>* record_model(QObject* parent);
  static std::vector<SummaryRow> summaries(const Accuracy& accuracy);
  /// The peaks and the step time of every record, worst first.
  static std::vector<RecordRow> records(const Accuracy& accuracy);
  static std::vector<RecordRow> filtered(const std::vector<RecordRow>& rows,
                                         const RecordFilter& filter);
  /// The kinds that there are, in the order of their names.
  static QStringList kinds(const std::vector<RecordRow>& rows);
  /// Predicted up, measured across, with a colour and a marker for each kind of `kinds`. The n-th
  /// point is the n-th row; all rows are of one figure.
  static PlotData plot(const std::vector<RecordRow>& rows, const QStringList& kinds,
                       const std::vector<QColor>& colours);
  /// What is known of a job by the records that are most like it: a sentence or two.
  static QString like_this(const SimilarRecords& like, const Plan& plan);
  static QString figure_name(Figure figure);

 private:
  static QString similarity(const SimilarRecords& like, const Plan& plan);
};

}  // namespace shardplan::gui
