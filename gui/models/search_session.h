// The search for the best plans around the session's job, off the windows' thread.
#pragma once

#include <QCoreApplication>
#include <QObject>
#include <QString>
#include <optional>
#include <vector>

#include "models/background.h"
#include "models/rows_model.h"
#include "models/session.h"
#include "questions/search/search.h"

namespace shardplan::gui {

/// A plan of the front.
struct FoundRow {
  QString plan;  ///< the choices that make it
  QString memory, step, tokens, gpus;
  QString hint;  ///< where its numbers come from
  double bytes = 0, seconds_a_token = 0;
};

/// A reason, and how many candidates it ruled out.
struct RuledOutRow {
  QString reason, count;
};

class SearchSession : public QObject {
  Q_OBJECT

 public:
  SearchSession(Session& session, QObject* parent = nullptr);

  /// A search varies how one model is trained.
  bool can_search() const;
  void start(Objective objective);
  void cancel() { work_.cancel(); }
  bool is_running() const { return work_.is_running(); }

  const std::optional<SearchResult>& result() const { return result_; }
  const RowsModel<FoundRow>& found() const { return *found_; }
  RowsModel<FoundRow>* found_model() { return found_; }
  RowsModel<RuledOutRow>* ruled_out_model() { return ruled_out_; }
  QString summary() const;

  /// Makes the session's job mean the plan of a row.
  void use(int row);

 Q_SIGNALS:
  void started();
  void progressed(double share);
  void finished();
  void failed(const QString& message);

 private:
  void take(const SearchSpace& space, const SearchResult& result);
  /// Another job was asked for: what was found, or is being looked for, is not about it.
  void forget();

  Session& session_;
  RowsModel<FoundRow>* found_;
  RowsModel<RuledOutRow>* ruled_out_;
  std::optional<SearchResult> result_;
  bool is_using_ = false;
  Background work_;
};

}  // namespace shardplan::gui
