// Work off the windows' thread: results, progress, cancelling, and no thread left behind.
#include "models/background.h"

#include <gtest/gtest.h>

#include <QThread>
#include <atomic>
#include <semaphore>

#include "gui_testing.h"
#include "models/search_session.h"
#include "support/threads.h"

namespace shardplan::gui {
namespace {

bool wait_for_end(const Background& background) {
  return wait_for(background, &Background::finished, [&] { return !background.is_running(); });
}

TEST(Background, DeliversItsResultOnTheThreadThatAsked) {
  Background background;
  int result = 0;
  QThread* delivered_on = nullptr;
  background.start([&](const Background::Control&) {
    return [&, value = 42] {
      result = value;
      delivered_on = QThread::currentThread();
    };
  });
  EXPECT_TRUE(background.is_running());
  ASSERT_TRUE(wait_for_end(background));
  EXPECT_EQ(result, 42);
  EXPECT_EQ(delivered_on, QThread::currentThread());
}

TEST(Background, TellsProgressAndFailure) {
  Background background;
  double share = 0;
  QString failure;
  QObject::connect(&background, &Background::progressed, [&](double s) { share = s; });
  QObject::connect(&background, &Background::failed, [&](const QString& f) { failure = f; });
  background.start([](const Background::Control& control) -> std::function<void()> {
    control.progress(0.5);
    throw std::runtime_error("no such thing");
  });
  ASSERT_TRUE(wait_for_end(background));
  EXPECT_EQ(share, 0.5);
  EXPECT_EQ(failure, QStringLiteral("no such thing"));
}

TEST(Background, DropsTheResultOfWhatWasCancelledOrReplaced) {
  Background background;
  std::binary_semaphore go(0);
  std::vector<int> results;
  const auto gives = [&](int value) {
    return
        [&, value](const Background::Control&) { return [&, value] { results.push_back(value); }; };
  };
  background.start([&](const Background::Control&) {
    go.acquire();  // replaced while it runs
    return [&] { results.push_back(1); };
  });
  background.start(gives(2));
  go.release();
  ASSERT_TRUE(wait_for_end(background));
  EXPECT_EQ(results, std::vector<int>{2});
  background.start(gives(3));
  background.cancel();
  background.start(gives(4));  // one piece of work at a time: 3 is over when 4 is
  ASSERT_TRUE(wait_for_end(background));
  EXPECT_EQ(results, (std::vector<int>{2, 4}));
}

TEST(Background, LeavesNoThreadWhenItGoes) {
  const int before = thread_count();
  std::atomic<bool> ended{false};
  bool begun = false;
  {
    Background background;
    QObject::connect(&background, &Background::progressed, [&] { begun = true; });
    background.start([&](const Background::Control& control) {
      control.progress(0);
      std::binary_semaphore asked(0);
      const std::stop_callback on_stop(control.stop, [&] { asked.release(); });
      asked.acquire();
      ended = true;
      return [] {};
    });
    ASSERT_TRUE(wait_for(background, &Background::progressed, [&] { return begun; }));
  }
  EXPECT_TRUE(ended);
  EXPECT_TRUE(falls_to(before));
}

TEST(SearchSession, FindsPlansThatFitAndWritesThemIntoTheJob) {
  Session session;
  ask(session, R"({"model": "gpt2", "cluster": "2x40GB"})");
  SearchSession search(session);
  search.start(Objective::throughput);
  ASSERT_TRUE(wait_for(search.work(), &Background::finished, [&] { return !search.is_running(); }));
  ASSERT_GT(search.found().rowCount(), 0);
  for (int row = 0; row < search.found().rowCount(); ++row) {
    const Found found = search.result()->front[static_cast<std::size_t>(row)];
    search.use(row);
    ASSERT_TRUE(session.answer().estimate) << session.document().json().dump(2);
    EXPECT_EQ(session.answer().estimate->device.point, found.estimate.device.point)
        << session.document().json().dump(2);
  }
}

TEST(SearchSession, ForgetsWhatWasFoundForAnotherJob) {
  Session session;
  ask(session, R"({"model": "gpt2", "cluster": "2x40GB"})");
  SearchSession search(session);
  search.start(Objective::memory);
  ASSERT_TRUE(wait_for(search.work(), &Background::finished, [&] { return !search.is_running(); }));
  ASSERT_TRUE(search.result());
  ask(session, R"({"model": "gpt2", "cluster": "4x40GB"})");
  EXPECT_FALSE(search.result());
  EXPECT_EQ(search.found().rowCount(), 0);
}

TEST(SearchSession, ClosingDuringASearchLeavesNoThread) {
  const int before = thread_count();
  {
    Session session;
    ask(session, R"({"model": "llama-2-70b", "cluster": "8x8xH100"})");
    SearchSession search(session);
    bool begun = false;
    QObject::connect(&search.work(), &Background::progressed, [&] { begun = true; });
    search.start(Objective::throughput);
    ASSERT_TRUE(wait_for(search.work(), &Background::progressed, [&] { return begun; }));
  }
  EXPECT_TRUE(falls_to(before));
}

}  // namespace
}  // namespace shardplan::gui
