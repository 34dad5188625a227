// Which machine to rent: every machine of the catalogue that has a price, by dollars and days for
// so many tokens of a model.
#pragma once

#include <QCoreApplication>
#include <QObject>
#include <QString>
#include <array>
#include <optional>
#include <vector>

#include "models/background.h"
#include "models/plot/plot.h"
#include "models/rows_model.h"
#include "models/session.h"
#include "questions/machines.h"

namespace shardplan::gui {

struct RentQuestion {
  std::vector<std::string> models, methods;
  double tokens = 0;  ///< of the whole run
  std::int64_t sequence_length = 2048;
  std::int64_t nodes = 1;  ///< as many of each machine
};

/// A machine with what it takes; numbers that are not known are 0.
struct RentRow {
  QString machine, provider, model, method, fit, batch, tokens, days, dollars, spot, as_of;
  QString hint;   ///< the price, its region and day, and its source
  QString error;  ///< why there is no answer
  bool fits = false;
  double days_value = 0, dollars_value = 0, tokens_value = 0;
  Json job;  ///< that runs it there
};

class RentSession : public QObject {
  Q_OBJECT

 public:
  explicit RentSession(Session& session, QObject* parent = nullptr);

  /// Asks again from the start. Rows change when all machines have answered.
  void start(const RentQuestion& question);
  /// What asks: its progress, its end, and what it failed with.
  const Background& work() const { return work_; }
  void cancel() { work_.cancel(); }
  bool is_running() const { return work_.is_running(); }

  /// Machines with a price, as questions name them.
  std::vector<std::string> machines(std::int64_t nodes) const;
  RowsModel<RentRow>* model() { return rows_; }
  const std::vector<RentRow>& rows() const { return rows_->rows(); }
  /// Those that fit: dollars up, days across, and the line of those that nothing beats.
  PlotData plot(std::vector<int>& rows_of_points) const;
  QString summary() const;

 private:
  Session& session_;
  RowsModel<RentRow>* rows_;
  Background work_;
};

}  // namespace shardplan::gui
