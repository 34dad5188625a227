// A job and its pace in sentences: what trains or generates, how, and how fast.
#pragma once

#include <QCoreApplication>
#include <QString>

#include "models/answer.h"

namespace shardplan::gui {

class JobWords {
  Q_DECLARE_TR_FUNCTIONS(JobWords)

 public:
  static QString subject(const Answer& a);  ///< "llama-2-7b (6.74 B parameters) on ..."
  static QString method(const Answer& a);   ///< "full fine-tuning with ..."
  static QString rates(const Answer& a);    ///< step, tokens/s, share of the peak, cost
  /// What the verdict page's figures are of: an engine has no step, a batch is not one.
  static QString memory_title(const Answer& a);
  static QString time_title(const Answer& a);
  /// What is beside a time: "; such steps were off by 6 % in the mean, 18 % at most".
  static QString error(const TimeEstimate& t);

 private:
  static QString generation_rates(const TimeEstimate& t);
  static QString cost(const Answer& a);
};

}  // namespace shardplan::gui
