// Every change of a job can be undone and done again, whatever file it belongs to by then.
#include <gtest/gtest.h>

#include <filesystem>

#include "gui_testing.h"
#include "models/dropped_file.h"
#include "models/job_difference.h"
#include "models/preferences.h"
#include "models/saved_files.h"
#include "support/subprocess.h"

namespace shardplan::gui {
namespace {

namespace fs = std::filesystem;

QString in(const TemporaryFolder& folder, const char* name) {
  return QString::fromStdString(folder.path(name));
}

TEST(Undo, TakesBackEveryChangeAndDoesItAgain) {
  Session session;
  ask(session, kTitleQuestion);
  JobDocument& document = session.document();
  std::vector<Json> states{document.json()};
  const auto add = [&] { states.push_back(document.json()); };
  document.set("/workload/sequence_length", 8192);
  add();
  session.change_plan([](Plan& plan) { plan.workload.micro_batch = 8; });
  add();
  session.find_fixes_now();
  ASSERT_FALSE(session.fixes().empty());
  session.apply(Fix(session.fixes().front()));
  add();
  document.start_new();
  add();
  ASSERT_EQ(states.size(), 5U);
  for (std::size_t i = states.size() - 1; i-- > 0;) {
    EXPECT_NE(states[i], states[i + 1]) << i;
    document.undo_stack().undo();
    EXPECT_EQ(document.json(), states[i]) << i;
    EXPECT_EQ(session.answer().estimate.has_value(), true) << i;
  }
  for (std::size_t i = 1; i < states.size(); ++i) {
    document.undo_stack().redo();
    EXPECT_EQ(document.json(), states[i]) << i;
  }
}

TEST(Undo, NamesWhatItTakesBack) {
  JobDocument document;
  document.set("/workload/micro_batch", 4);
  EXPECT_EQ(document.undo_stack().undoText(), QStringLiteral("workload"));
  document.set("/workload/micro_batch", 8);
  EXPECT_EQ(document.undo_stack().undoText(), QStringLiteral("workload.micro_batch"));
  document.replace(Json::parse(R"({"model": "gpt2", "cluster": "H100"})"));
  EXPECT_TRUE(document.undo_stack().undoText().contains(QStringLiteral("more")));
}

TEST(Undo, OneGestureIsOneStep) {
  JobDocument document;
  const Json before = document.json();
  document.begin_gesture();
  for (const char* typed : {"g", "gp", "gpt", "gpt2"}) {
    document.begin_gesture();  // as at every key
    document.set("/model", typed);
  }
  document.end_gesture();
  document.set("/cluster", "H100");
  EXPECT_EQ(document.undo_stack().count(), 2);
  document.undo_stack().undo();
  document.undo_stack().undo();
  EXPECT_EQ(document.json(), before);
  document.undo_stack().redo();
  EXPECT_EQ(document.json().at("model").get<std::string>(), "gpt2");
}

TEST(Undo, WhatWasTypedAndTakenBackIsNoStep) {
  JobDocument document;
  document.begin_gesture();
  document.set("/model", "g");
  document.set("/model", nullptr);
  document.end_gesture();
  EXPECT_EQ(document.undo_stack().count(), 0);
}

TEST(Undo, KnowsWhatTheFileSays) {
  const TemporaryFolder folder;
  JobDocument document;
  EXPECT_FALSE(document.is_modified());
  document.set("/model", "gpt2");
  EXPECT_TRUE(document.is_modified());
  document.undo_stack().undo();
  EXPECT_FALSE(document.is_modified());
  document.undo_stack().redo();
  document.save(in(folder, "job.json"));
  EXPECT_FALSE(document.is_modified());
  document.undo_stack().undo();
  EXPECT_TRUE(document.is_modified());
  EXPECT_EQ(document.path(), in(folder, "job.json"));  // the next save is to the file
  document.set("/model", "gpt2");
  EXPECT_FALSE(document.is_modified());
}

TEST(Undo, LeadsBackToTheJobThatAnotherFileReplaced) {
  const TemporaryFolder folder;
  JobDocument document;
  document.set("/model", "gpt2");
  document.save(in(folder, "first.json"));
  const Json first = document.json();
  document.open(QString::fromStdString(folder.file("second.json", kTitleQuestion)));
  document.set("/workload/micro_batch", 2);
  document.undo_stack().undo();
  EXPECT_EQ(document.path(), in(folder, "second.json"));
  document.undo_stack().undo();
  EXPECT_EQ(document.path(), in(folder, "first.json"));
  EXPECT_EQ(document.json(), first);
  EXPECT_FALSE(document.is_modified());
}

TEST(Undo, RelativePathsFollowTheJobToAnotherFolder) {
  const TemporaryFolder folder;
  fs::create_directory(folder.path("there"));
  folder.file("ds.json", R"({"zero_optimization": {"stage": 2}})");
  JobDocument document;
  document.open(QString::fromStdString(folder.file(
      "job.json",
      R"({"model": "gpt2", "cluster": "4xA100-40GB", "framework": {"ds_config": "ds.json"}})")));
  document.set("/workload/sequence_length", 512);
  document.save(in(folder, "there/job.json"));
  document.undo_stack().undo();
  EXPECT_EQ(document.json().at("framework").at("ds_config").get<std::string>(), "../ds.json");
  EXPECT_FALSE(document.json().contains("workload"));
}

TEST(Draft, BringsBackTheJobAsItWasLeft) {
  const TemporaryFolder folder;
  JobDocument left;
  left.set("/model", "gpt2");
  left.save(in(folder, "job.json"));
  left.set("/cluster", "H100");
  keep_draft(left);
  JobDocument document;
  ASSERT_TRUE(resume_draft(document));
  EXPECT_EQ(document.json(), left.json());
  EXPECT_EQ(document.path(), left.path());
  EXPECT_TRUE(document.is_modified());
  EXPECT_FALSE(document.undo_stack().canUndo());
  fs::remove(folder.path("job.json"));
  ASSERT_TRUE(resume_draft(document));  // the file is gone: the job is all that there is
  EXPECT_TRUE(document.is_modified());
}

TEST(Differences, AreFieldByField) {
  const Json before = Json::parse(R"({"a": 1, "b": {"c": 2, "d": [1, 2]}, "e": {"f": 1}})");
  const Json after = Json::parse(R"({"a": 1, "b": {"c": 3, "d": [1]}, "g": "x"})");
  std::vector<std::string> found;
  for (const FieldDifference& d : differences(before, after))
    found.push_back(JobDifference::words_of(d).toStdString());
  EXPECT_EQ(found, (std::vector<std::string>{"b.c: 2 → 3", "b.d: [1,2] → [1]",
                                             "e: {\"f\":1} → not given", "g: not given → x"}));
  EXPECT_TRUE(differences(before, before).empty());
}

TEST(CommandToCopy, RunsWhereverItIsPasted) {
  const TemporaryFolder folder;
  JobDocument document;
  document.replace(Json::parse(kTitleQuestion));
  const auto flags = command_to_copy(document);
  ASSERT_TRUE(flags);
  EXPECT_NE(flags->find("--model 7B"), std::string::npos);
  document.set("/framework", Json{{"ds_config", Json{{"zero_optimization", {{"stage", 2}}}}}});
  EXPECT_FALSE(command_to_copy(document));  // no flag says it, and no file has it
  document.save(in(folder, "job.json"));
  EXPECT_EQ(command_to_copy(document), "shardplan estimate " + folder.path("job.json"));
}

TEST(PlanFiles, ThatSaySomethingElseAreInTheWay) {
  const TemporaryFolder folder;
  const std::vector<PlanFile> files{{"a.json", "{}"}, {"b.json", "{}"}, {"c.json", "{}"}};
  folder.file("a.json", "{}");
  folder.file("b.json", "something else");
  EXPECT_EQ(files_in_the_way(files, folder.path("")), std::vector<std::string>{"b.json"});
}

}  // namespace
}  // namespace shardplan::gui
