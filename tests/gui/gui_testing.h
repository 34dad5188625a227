// A session with a job, and waiting for what happens in the background.
#pragma once

#include <QCoreApplication>
#include <QEventLoop>
#include <QTimer>
#include <chrono>
#include <nlohmann/json.hpp>

#include "models/session.h"

namespace shardplan::gui {

inline void ask(Session& session, const char* job) {
  session.document().replace(Json::parse(job));
}

/// When a test gives up: nothing that happens at all takes this long, however busy the machine is.
inline constexpr std::chrono::milliseconds kHangs{120'000};

/// Runs events until `sender` has emitted `signal` with `done` true; at once when it is already.
template <typename Sender, typename Signal, typename Done>
bool wait_for(const Sender& sender, Signal signal, Done done) {
  if (done()) return true;
  QEventLoop loop;
  QObject::connect(&sender, signal, &loop, [&] {
    if (done()) loop.quit();
  });
  QTimer::singleShot(kHangs, &loop, &QEventLoop::quit);
  loop.exec();
  return done();
}

inline constexpr const char* kTitleQuestion =
    R"({"model": "7B", "cluster": "4x40GB", "checkpointing": "full"})";

/// Lacks memory: there is always something that would help.
inline constexpr const char* kTooLarge =
    R"({"model": "7B", "cluster": "4x40GB", "checkpointing": "full",
        "workload": {"micro_batch": 16}})";

}  // namespace shardplan::gui
