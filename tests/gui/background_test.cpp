// Work off the windows' thread: results, progress, cancelling, and no thread left behind.
#include <gtest/gtest.h>

#include <atomic>

#include "gui_testing.h"
#include "models/background.h"
#include "models/search_session.h"

namespace shardplan::gui {
namespace {

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
  ASSERT_TRUE(wait_for([&] { return !background.is_running(); }));
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
  ASSERT_TRUE(wait_for([&] { return !failure.isEmpty(); }));
  EXPECT_EQ(share, 0.5);
  EXPECT_EQ(failure, QStringLiteral("no such thing"));
}

TEST(Background, DropsTheResultOfWhatWasCancelledOrReplaced) {
  Background background;
  std::atomic<bool> go{false};
  std::vector<int> results;
  const auto work = [&](int value) {
    return [&, value](const Background::Control&) {
      while (!go) QThread::msleep(1);
      return [&, value] { results.push_back(value); };
    };
  };
  background.start(work(1));
  background.start(work(2));
  go = true;
  ASSERT_TRUE(wait_for([&] { return !background.is_running(); }));
  EXPECT_EQ(results, std::vector<int>{2});
  background.start(work(3));
  background.cancel();
  EXPECT_FALSE(wait_for([&] { return results.size() > 1; }, 50));
}

TEST(Background, LeavesNoThreadWhenItGoes) {
  std::atomic<bool> ended{false}, begun{false};
  {
    Background background;
    background.start([&](const Background::Control& control) {
      begun = true;
      while (!control.stop.stop_requested()) QThread::msleep(1);
      ended = true;
      return [] {};
    });
    ASSERT_TRUE(wait_for([&] { return begun.load(); }));
  }
  EXPECT_TRUE(ended);
}

TEST(SearchSession, FindsPlansThatFitAndWritesThemIntoTheJob) {
  Session session;
  ask(session, R"({"model": "gpt2", "cluster": "2x40GB"})");
  SearchSession search(session);
  search.start(Objective::throughput);
  ASSERT_TRUE(wait_for([&] { return search.result().has_value(); }, 60'000));
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
  ASSERT_TRUE(wait_for([&] { return search.result().has_value(); }, 60'000));
  ask(session, R"({"model": "gpt2", "cluster": "4x40GB"})");
  EXPECT_FALSE(search.result());
  EXPECT_EQ(search.found().rowCount(), 0);
}

TEST(SearchSession, ClosingDuringASearchStopsIt) {
  Session session;
  ask(session, R"({"model": "llama-2-70b", "cluster": "8x8xH100"})");
  auto search = std::make_unique<SearchSession>(session);
  search->start(Objective::throughput);
  ASSERT_TRUE(search->is_running());
  QDeadlineTimer deadline(5'000);
  search.reset();
  EXPECT_FALSE(deadline.hasExpired());
}

}  // namespace
}  // namespace shardplan::gui
