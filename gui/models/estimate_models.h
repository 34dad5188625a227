// The parts of an estimate as values and tables, in the words of the command line.
#pragma once

#include <QCoreApplication>
#include <QString>
#include <vector>

#include "models/answer.h"
#include "models/rows_model.h"

namespace shardplan::gui {

/// A part of a bar: memory of a category, or seconds of an activity.
struct Share {
  QString name;
  QString amount;  ///< as the command line prints it
  QString source;  ///< "exact", "modelled", ...
  QString hint;    ///< where the number comes from: provenance.h
  double value = 0;
  int colour = 0;  ///< index into the palette of its bar
};

/// A row of a small table; `hint` tells where its numbers come from.
struct Fact {
  QString name, first, second, third;
  QString hint;
};

/// The verdict on GPU, host or NVMe: what it needs of what there is, and the margin.
struct ResourceLine {
  QString name;
  QString verdict;  ///< "FITS", or "not used"
  QString amount;   ///< "38.9 GiB of 39.4 GiB"
  QString margin;   ///< "452 MiB to spare; upper bound 39.4 GiB"
  QString hint;
  Fit fit = Fit::unknown;
  bool is_used = false;
  double needed = 0, upper = 0, available = 0;  ///< bytes; 0: not known
};

class EstimateModels {
  Q_DECLARE_TR_FUNCTIONS(EstimateModels)

 public:
  static std::vector<ResourceLine> resources(const Answer& a);
  /// All categories that are there at the peak, in their own order: a bar's segments. Without
  /// hints: a bar that follows a slider asks for them when somebody points at it.
  static std::vector<Share> breakdown(const Estimate& e, const Plan& plan);
  /// The same with their hints.
  static std::vector<Share> breakdown(const Estimate& e, const Plan& plan,
                                      const Calibration& calibration);
  static std::vector<Share> time(const Answer& a);
  static std::vector<Fact> phases(const Answer& a);
  static std::vector<Fact> traffic(const Answer& a);
  /// What the answer rests on, as the command line says it.
  static std::vector<Fact> foundation(const Answer& a, const Calibration& calibration);

  static QString largest_consumer(const Answer& a);  ///< a sentence
  static QString phase_name(Phase phase);            ///< "forward pass"

  static RowsModel<Share>* breakdown_model(QObject* parent);
  static RowsModel<Fact>* fact_model(const QStringList& titles, bool numbers, QObject* parent);
};

}  // namespace shardplan::gui
