// What a serving engine answers, in sentences and shares: sequences at once, pace, one pass.
#pragma once

#include <QCoreApplication>
#include <QString>

#include "models/answer.h"
#include "models/estimate_models.h"

namespace shardplan::gui {

class ServingWords {
  Q_DECLARE_TR_FUNCTIONS(ServingWords)

 public:
  /// "99 sequences at once, as many as the cache has room for".
  static QString sequences(const ServingEstimate& s);
  /// Sequences, tokens/s, the first token, what a million tokens cost.
  static QString rates(const Answer& a);
  /// Parts of one pass.
  static std::vector<Share> pass(const Estimate& e);

 private:
  static QString cost(const Answer& a);
};

}  // namespace shardplan::gui
