// A run of shardplan-validate as plots and as a table of what was measured beside what was
// predicted.
#pragma once

#include <QCoreApplication>

#include "models/plot/plot.h"
#include "models/rows_model.h"
#include "models/validator_run.h"

namespace shardplan::gui {

/// A figure, and how far the prediction is off.
struct MeasuredRow {
  QString name, predicted, planned, measured, error;
};

/// Colours of the curves, which the views know.
struct RunColours {
  QColor first, second;
};

class RunModels {
  Q_DECLARE_TR_FUNCTIONS(RunModels)

 public:
  static RowsModel<MeasuredRow>* model(QObject* parent);
  /// Before the run has ended the peak alone, as far as it was measured.
  static std::vector<MeasuredRow> rows(const ValidatorRun& run);
  static PlotData loss(const ValidatorRun& run, const RunColours& colours);
  static PlotData memory(const ValidatorRun& run, const RunColours& colours);
  /// "step 12 of 30: loss 4.21, 410 ms, at most 2.88 MiB of each rank"
  static QString state(const ValidatorRun& run);
  /// "gpt2, 170,560 parameters, ZeRO-2 on 4 ranks of this host's CPU"
  static QString subject(const RunFacts& facts);

 private:
  static QString name_of(const RunFigure& figure);
};

}  // namespace shardplan::gui
