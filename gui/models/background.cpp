#include "models/background.h"

#include <exception>

namespace shardplan::gui {

Background::Background(QObject* parent) : QObject(parent) {
  pool_.setMaxThreadCount(1);
}

Background::~Background() {
  stop_.request_stop();
  pool_.clear();
  pool_.waitForDone();
}

void Background::start(Work work) {
  stop_.request_stop();
  pool_.clear();
  stop_ = std::stop_source();
  running_ = true;
  const quint64 run = ++run_;
  const Control control{stop_.get_token(), [this, run](double share) {
                          QMetaObject::invokeMethod(
                              this,
                              [this, run, share] {
                                if (run == run_ && running_) Q_EMIT progressed(share);
                              },
                              Qt::QueuedConnection);
                        }};
  Q_EMIT started();
  pool_.start([this, run, control, work = std::move(work)] {
    std::function<void()> result;
    QString failure;
    try {
      result = work(control);
    } catch (const std::exception& e) {
      failure = QString::fromUtf8(e.what());
    }
    if (control.stop.stop_requested()) return;
    QMetaObject::invokeMethod(
        this, [this, run, result, failure] { deliver(run, result, failure); },
        Qt::QueuedConnection);
  });
}

void Background::cancel() {
  if (!running_) return;
  stop_.request_stop();
  ++run_;
  running_ = false;
  Q_EMIT finished();
}

void Background::deliver(quint64 run, const std::function<void()>& result, const QString& failure) {
  if (run != run_) return;
  running_ = false;
  if (result) result();
  if (!failure.isEmpty()) Q_EMIT failed(failure);
  Q_EMIT finished();
}

}  // namespace shardplan::gui
