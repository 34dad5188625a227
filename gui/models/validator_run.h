// A run of shardplan-validate in a process of its own, as it tells of itself line by line
// (--progress json).
#pragma once

#include <QByteArray>
#include <QCoreApplication>
#include <QObject>
#include <QProcess>
#include <QTemporaryDir>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

namespace shardplan::gui {

/// What a run is of, and what was predicted for it; bytes are of the fullest rank.
struct RunFacts {
  QString model, device;
  std::int64_t parameters = 0, ranks = 0, zero_stage = 0, steps = 0, warmup = 0;
  double predicted_peak = 0;
  std::optional<double> predicted_seconds;
};

struct RunStep {
  std::int64_t step = 0;       ///< from 1
  std::optional<double> loss;  ///< nothing: it is no number
  double seconds = 0, peak = 0, live = 0;
  bool skipped = false;
};

/// A figure of memory: predicted, planned by a dry run and measured, in bytes.
struct RunFigure {
  QString id;  ///< as the program names it: "optimizer_states", "forward peak"
  enum class Kind : std::uint8_t { category, phase, peak, host } kind = Kind::category;
  double predicted = 0, planned = 0;
  std::optional<double> measured;
};

class ValidatorRun : public QObject {
  Q_OBJECT

 public:
  explicit ValidatorRun(QObject* parent = nullptr);
  /// Ends a run that goes on.
  ~ValidatorRun() override;

  /// Where the program is: beside this one, where a build has it, or on PATH; "" where it is not.
  static QString program();

  struct Request {
    nlohmann::ordered_json job;
    QString name;  ///< of the record
    int steps = 0;
  };
  /// Begins; what ran before is ended.
  void start(const Request& request);
  void stop();
  bool is_running() const { return process_.state() != QProcess::NotRunning; }

  const std::optional<RunFacts>& facts() const { return facts_; }
  const std::vector<RunStep>& steps() const { return steps_; }
  const std::vector<RunFigure>& figures() const { return figures_; }
  /// The measurement record (shardplan.record/1) of a run that ended well; null before.
  const nlohmann::ordered_json& record() const { return record_; }
  /// Why it ended, in the program's words; "" while it goes on, and when all went well.
  const QString& failure() const { return failure_; }
  bool was_stopped() const { return was_stopped_; }
  /// Median of the steps that are timed; nothing before there are any.
  std::optional<double> median_seconds() const;

 Q_SIGNALS:
  void started();
  void stepped();   ///< facts or steps were added
  void finished();  ///< well, badly or by stop()

 private:
  void read_lines();
  void take(const QByteArray& line);
  void take_result(nlohmann::ordered_json result);
  void end(int exit_code, QProcess::ExitStatus status);

  QProcess process_;
  std::unique_ptr<QTemporaryDir> folder_;  ///< of the job's file
  std::optional<RunFacts> facts_;
  std::vector<RunStep> steps_;
  std::vector<RunFigure> figures_;
  nlohmann::ordered_json record_;
  QString failure_;
  bool was_stopped_ = false;
};

}  // namespace shardplan::gui
