// Where a number comes from: the formula with its values, and its standing. Shown on hover, and
// read out as the description of what shows the number.
#pragma once

#include <QCoreApplication>
#include <QString>

#include "models/answer.h"
#include "questions/fixes.h"

namespace shardplan::gui {

class Provenance {
  Q_DECLARE_TR_FUNCTIONS(Provenance)

 public:
  static QString category(const Estimate& e, const Plan& plan, const CategoryLine& line,
                          const Calibration& calibration);
  static QString device(const Estimate& e, const Plan& plan);
  static QString host(const HostMemory& node);
  static QString nvme(const HostMemory& node);
  /// Live bytes of tensors at some moment of the step.
  static QString live(const Answer& a, std::int64_t bytes, const QString& moment);
  static QString traffic(const Plan& plan, const TrafficLine& line);
  static QString seconds(const QString& name, double seconds, const QString& formula,
                         Source source);
  static QString step(const Estimate& e);
  static QString rates(const Estimate& e, const Plan& plan);
  /// `before`: the estimate that the fix changes; `sets`: what it writes, key by key.
  static QString fix(const QStringList& sets, const Fix& fix, const Estimate& before);

  /// "exact: counted from the model and the plan", ...
  static QString standing(Source source);
};

}  // namespace shardplan::gui
