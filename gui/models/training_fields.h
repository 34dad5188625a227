// The fields of the training page: what can be chosen, what is in force, and how a choice is
// written into the job.
#pragma once

#include <QCoreApplication>
#include <QString>
#include <QVariant>
#include <functional>
#include <vector>

#include "models/session.h"
#include "parallel/support.h"

namespace shardplan::gui {

struct Choice {
  QString label;
  QVariant value;
};

struct TrainingField {
  QString label;
  QString help = {};            ///< in a line; "": the label says it
  std::string pointer;          ///< of the job: tells whether the job says it or it was assumed
  std::vector<Choice> choices;  ///< empty: a whole number
  int least = 1, most = 1 << 30;
  std::function<QVariant(const Job&)> read;
  std::function<void(Session&, const QVariant&)> write;
  std::function<bool(const Job&)> applies;  ///< empty: always
  /// Whether the job can have the value; empty: any. What it cannot have is not offered.
  std::function<bool(const Job&, const QVariant&)> allows = {};

  /// Of a field that jobs of every kind have, and that is there without a job too: but for these.
  std::function<bool(const Job&)> excludes = {};

  bool applies_to(const Job& job) const {
    return (!applies || applies(job)) && (!excludes || !excludes(job));
  }
  /// What 0 is called where the job may leave the number open.
  QString open_words = {};
  std::function<bool(const Job&)> may_be_open = {};
  bool can_be_open(const Job& job) const { return may_be_open && may_be_open(job); }
  /// Those of `choices` that the job can have.
  std::vector<Choice> offered(const Job& job) const;
};

class TrainingFields {
  Q_DECLARE_TR_FUNCTIONS(TrainingFields)

 public:
  /// Of the training page: each applies to some kinds of jobs.
  static std::vector<TrainingField> all();

  // Shared with the sliders of the verdict page.
  static TrainingField micro_batch();
  static TrainingField sequence_length();
  static TrainingField gpus();
  static TrainingField stage();
  static TrainingField offload();
  static TrainingField checkpointing();
  static TrainingField batch();
  static TrainingField prompt_length();
  static TrainingField new_tokens();
  static TrainingField weights();
  static TrainingField cache_type();

 private:
  static TrainingField kind();
  static TrainingField algorithm();
  static TrainingField weights_place();
  static TrainingField degree(Degree degree);
  static TrainingField framework();
  static TrainingField method();
  static TrainingField lora_rank();
  static TrainingField accumulation();
  static TrainingField precision();
  static TrainingField optimizer();
  static TrainingField attention();
  static TrainingField sdpa_kernel();
  static TrainingField loss();
};

}  // namespace shardplan::gui
