// The linter over the job's ds_config, off the windows' thread: it estimates the job once a key.
#pragma once

#include <QObject>
#include <QString>
#include <optional>

#include "models/background.h"
#include "models/findings.h"
#include "models/session.h"

namespace shardplan::gui {

class LintSession : public QObject {
  Q_OBJECT

 public:
  explicit LintSession(Session& session, QObject* parent = nullptr);

  /// Brings the findings up to the session's job; changed() follows, soon or at once.
  void look();

  RowsModel<Finding>* model() { return rows_; }
  const RowsModel<Finding>& findings() const { return *rows_; }
  QString summary() const { return summary_; }
  bool is_running() const { return work_.is_running(); }
  /// How many rows have a fix that can be applied.
  int fixable() const;

  /// Writes the fix of a row into the ds_config, which is then inside the job.
  void apply(int row);
  void apply_all();

 Q_SIGNALS:
  void changed();

 private:
  void take(const LintReport& report, const Json& repaired);
  void write(const std::vector<Edit>& edits);

  Session& session_;
  RowsModel<Finding>* rows_;
  QString summary_;
  Json repaired_;          ///< the ds_config with all fixes; null where none can be read
  quint64 looked_at_ = 0;  ///< the answer that the findings are about
  Background work_;
};

}  // namespace shardplan::gui
