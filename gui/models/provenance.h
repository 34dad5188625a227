// Where a number comes from: the formula with its values, and its standing. Shown on hover, and
// read out as the description of what shows the number.
#pragma once

#include <QCoreApplication>
#include <QString>

#include "models/answer.h"

namespace shardplan::gui {

class Provenance {
  Q_DECLARE_TR_FUNCTIONS(Provenance)

 public:
  static QString category(const Answer& a, const CategoryLine& line,
                          const Calibration& calibration);
  static QString device(const Answer& a);
  static QString host(const Answer& a);
  static QString nvme(const Answer& a);
  /// Live bytes of tensors at some moment of the step.
  static QString live(const Answer& a, std::int64_t bytes, const QString& moment);
  static QString traffic(const Answer& a, const TrafficLine& line);
  static QString seconds(const QString& name, double seconds, const QString& formula,
                         Source source);
  static QString rates(const Answer& a);

  /// "exact: counted from the model and the plan", ...
  static QString standing(Source source);
};

}  // namespace shardplan::gui
