// A session with a job, and waiting for what happens in the background.
#pragma once

#include <QCoreApplication>
#include <QDeadlineTimer>
#include <QThread>
#include <nlohmann/json.hpp>

#include "models/session.h"

namespace shardplan::gui {

inline void ask(Session& session, const char* job) {
  session.document().replace(Json::parse(job));
}

/// Runs events until `done` or ten seconds have passed; whether it was done.
template <typename Done>
bool wait_for(Done done, int milliseconds = 10'000) {
  QDeadlineTimer deadline(milliseconds);
  while (!done() && !deadline.hasExpired()) {
    QCoreApplication::processEvents(QEventLoop::AllEvents, 10);
    QThread::msleep(1);
  }
  return done();
}

inline constexpr const char* kTitleQuestion =
    R"({"model": "7B", "cluster": "4x40GB", "checkpointing": "full"})";

}  // namespace shardplan::gui
