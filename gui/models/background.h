// One piece of long work at a time, off the windows' thread.
#pragma once

#include <QObject>
#include <QThreadPool>
#include <functional>
#include <stop_token>

namespace shardplan::gui {

class Background : public QObject {
  Q_OBJECT

 public:
  explicit Background(QObject* parent = nullptr);
  /// Asks running work to stop and waits until its thread has ended.
  ~Background() override;

  struct Control {
    std::stop_token stop;                  ///< asked for when the result is not wanted any more
    std::function<void(double)> progress;  ///< from 0 to 1; may be called from the work's thread
  };
  /// Computes values, and returns what the windows' thread does with them.
  using Work = std::function<std::function<void()>(const Control&)>;

  /// Starts `work`; what ran before is cancelled and its result dropped. What it throws is told by
  /// failed().
  void start(Work work);
  void cancel();
  bool is_running() const { return running_; }

 Q_SIGNALS:
  void started();
  void progressed(double share);
  void finished();
  void failed(const QString& message);

 private:
  void deliver(quint64 run, const std::function<void()>& result, const QString& failure);

  QThreadPool pool_;
  std::stop_source stop_;
  quint64 run_ = 0;  ///< the number of the newest work; results of older ones are dropped
  bool running_ = false;
};

}  // namespace shardplan::gui
