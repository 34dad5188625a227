// The fields of the training page: what can be chosen, what is in force, and how a choice is
// written into the job.
#pragma once

#include <QCoreApplication>
#include <QString>
#include <QVariant>
#include <functional>
#include <vector>

#include "models/session.h"

namespace shardplan::gui {

struct Choice {
  QString label;
  QVariant value;
};

struct TrainingField {
  QString label;
  std::string pointer;          ///< of the job: tells whether the job says it or it was assumed
  std::vector<Choice> choices;  ///< empty: a whole number
  int least = 1, most = 1 << 30;
  std::function<QVariant(const Job&)> read;
  std::function<void(Session&, const QVariant&)> write;
  std::function<bool(const Job&)> applies;  ///< empty: always
};

class TrainingFields {
  Q_DECLARE_TR_FUNCTIONS(TrainingFields)

 public:
  static std::vector<TrainingField> all();

  // Shared with the sliders of the verdict page.
  static TrainingField micro_batch();
  static TrainingField sequence_length();
  static TrainingField gpus();
  static TrainingField stage();
  static TrainingField offload();
  static TrainingField checkpointing();

 private:
  static TrainingField framework();
  static TrainingField method();
  static TrainingField lora_rank();
  static TrainingField accumulation();
  static TrainingField precision();
  static TrainingField optimizer();
  static TrainingField attention();
  static TrainingField loss();
};

}  // namespace shardplan::gui
