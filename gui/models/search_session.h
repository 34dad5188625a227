// The search for the best plans around the session's job, off the windows' thread.
#pragma once

#include <QCoreApplication>
#include <QObject>
#include <QString>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "models/background.h"
#include "models/found_plans.h"
#include "models/session.h"
#include "questions/search/search.h"
#include "questions/search/space.h"

namespace shardplan::gui {

/// A reason, and how many candidates it ruled out.
struct RuledOutRow {
  QString reason, count;
};

/// What a search was about, and what it found: a window that takes another's place shows it again.
struct SearchOutcome {
  Json job;  ///< as it was written when the search began
  Objective objective = Objective::throughput;
  SearchSpace space;
  SearchResult result;
};

class SearchSession : public QObject {
  Q_OBJECT

 public:
  SearchSession(Session& session, QObject* parent = nullptr);

  /// A search varies how one model is trained.
  bool can_search() const;
  void start(Objective objective);
  /// Searches again around a job that was searched before, of which the session's is a plan.
  void start_again(const Json& job, Objective objective);
  /// Shows what another session's search found.
  void resume(std::optional<SearchOutcome> outcome);
  /// What searches: its progress, its end, and what it failed with.
  const Background& work() const { return work_; }
  void cancel() { work_.cancel(); }
  bool is_running() const { return work_.is_running(); }

  const std::optional<SearchOutcome>& outcome() const { return outcome_; }
  const SearchResult* result() const { return outcome_ ? &outcome_->result : nullptr; }
  const RowsModel<FoundRow>& found() const { return *found_; }
  RowsModel<FoundRow>* found_model() { return found_; }
  RowsModel<RuledOutRow>* ruled_out_model() { return ruled_out_; }
  QString summary() const;

  /// Makes the session's job mean the plan of a row.
  void use(int row);

 Q_SIGNALS:
  /// Another search's outcome is shown, or the one that was is about another job: no search ended.
  void outcome_changed();

 private:
  void run(Json written, Job job, Objective objective);
  void take(SearchOutcome outcome);
  /// Another job may have been asked for: what was found, or is looked for, is not about it then.
  void forget_if_another();

  Session& session_;
  RowsModel<FoundRow>* found_;
  RowsModel<RuledOutRow>* ruled_out_;
  std::optional<SearchOutcome> outcome_;
  std::vector<Json> own_jobs_;  ///< that the outcome is about: the job searched, and plans of it
  bool is_using_ = false;
  Background work_;
};

}  // namespace shardplan::gui
