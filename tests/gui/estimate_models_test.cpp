// What the windows show against core's JSON: the same numbers in the same words.
#include <gtest/gtest.h>

#include <QLocale>

#include <algorithm>

#include "base/format.h"
#include "gui_testing.h"
#include "models/estimate_models.h"
#include "models/fixes.h"
#include "models/job_words.h"
#include "models/messages.h"
#include "models/text.h"
#include "models/training_fields.h"
#include "models/verdict_words.h"
#include "save/estimate.h"

namespace shardplan::gui {
namespace {

class EstimateModelsTest : public testing::Test {
 protected:
  EstimateModelsTest() { ask(session_, kTitleQuestion); }
  Json json() const { return to_json(*session_.answer().estimate, *session_.answer().job); }
  static QString bytes(const Json& value) { return text(format_bytes(value.get<std::int64_t>())); }

  Session session_;
};

TEST_F(EstimateModelsTest, TheVerdictIsTheJsons) {
  const Json j = json();
  const auto lines = EstimateModels::resources(session_.answer());
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(name_of(lines[0].fit), j["verdict"]["gpu"]["verdict"].get<std::string>());
  EXPECT_EQ(lines[0].amount,
            QStringLiteral("%1 of %2")
                .arg(bytes(j["gpu"]["peak"]["device"]["point"]), bytes(j["gpu"]["usable_bytes"])));
  EXPECT_TRUE(lines[0].margin.contains(bytes(j["gpu"]["peak"]["device"]["upper"])));
  EXPECT_FALSE(lines[1].is_used);
}

TEST_F(EstimateModelsTest, ThePartsAreTheBreakdownAndAddUp) {
  const Json j = json();
  const auto parts = EstimateModels::breakdown(
      *session_.answer().estimate, session_.answer().job->plan, session_.workbench().calibration);
  double sum = 0;
  std::size_t at = 0;
  for (const Json& line : j["gpu"]["breakdown"]) {
    if (line["at_peak_bytes"].get<std::int64_t>() <= 0) continue;
    ASSERT_LT(at, parts.size());
    EXPECT_EQ(parts[at].amount, bytes(line["at_peak_bytes"]));
    EXPECT_EQ(parts[at].source, text(line["source"].get<std::string>()));
    EXPECT_TRUE(
        parts[at].hint.contains(text(format_count(line["at_peak_bytes"].get<std::int64_t>()))));
    sum += parts[at++].value;
  }
  EXPECT_EQ(at, parts.size());
  EXPECT_EQ(sum, j["gpu"]["peak"]["device"]["point"].get<double>());
}

TEST_F(EstimateModelsTest, ThePhasesAreTheJsons) {
  const Json phases = json()["gpu"]["phases"];
  const auto rows = EstimateModels::phases(session_.answer());
  EXPECT_EQ(rows[0].second, bytes(phases["model"]));
  EXPECT_EQ(rows[1].first, bytes(phases["forward_peak"]));
  EXPECT_EQ(rows[2].second, bytes(phases["backward_end"]));
  EXPECT_EQ(rows[3].first, bytes(phases["step_peak"]));
}

TEST_F(EstimateModelsTest, TheTimelinePeaksAtTheAllocatedPeak) {
  const Answer& a = session_.answer();
  EXPECT_EQ(a.timeline->points[a.timeline->peak].total, a.estimate->allocated.point);
}

TEST_F(EstimateModelsTest, TheTimeIsTheJsons) {
  const Json time = json()["time"];
  EXPECT_TRUE(JobWords::rates(session_.answer())
                  .contains(text(format_seconds(time["step_seconds"].get<double>()))));
  double sum = 0;
  for (const Share& part : EstimateModels::time(session_.answer())) sum += part.value;
  EXPECT_NEAR(sum, time["step_seconds"].get<double>(), 1e-9);
}

TEST(TimeParts, SayWhereTheHostDecides) {
  const auto idle = [](int batch) {
    Session session;
    ask(session, Json{{"model", "gpt2"},
                      {"cluster", "1xH200-SXM-141GB"},
                      {"workload", {{"micro_batch", batch}, {"sequence_length", 128}}}}
                     .dump()
                     .c_str());
    for (const Share& part : EstimateModels::time(session.answer()))
      if (part.hint.contains("slower host")) return true;
    return false;
  };
  EXPECT_TRUE(idle(1));
  EXPECT_FALSE(idle(512));
}

/// Of a job whose optimizer states are on hosts of `host_bytes`; 0: nobody says how much they have.
std::string offloading(std::int64_t host_bytes) {
  Json job = Json::parse(R"({"model": "llama-2-7b", "checkpointing": "full",
      "cluster": {"gpu": "A100-SXM4-80GB", "gpus_per_node": 4},
      "framework": {"name": "deepspeed", "zero_stage": 3, "offload_optimizer": "cpu"}})");
  if (host_bytes > 0) job["cluster"]["host_memory_bytes"] = host_bytes;
  return job.dump();
}

TEST_F(EstimateModelsTest, AnUnknownHostIsACondition) {
  ask(session_, offloading(0).c_str());
  const Estimate& e = *session_.answer().estimate;
  ASSERT_TRUE(e.verdict.fits);
  const QString condition =
      QStringLiteral("if each host has %1").arg(text(format_bytes(e.verdict.host.needed)));
  EXPECT_TRUE(VerdictWords::brief(e.verdict).endsWith(condition));
  EXPECT_TRUE(VerdictWords::sentence(e).endsWith(condition));
  EXPECT_TRUE(VerdictWords::sentence(e).startsWith(QStringLiteral("Yes, ")));
  ask(session_, kTitleQuestion);
  EXPECT_FALSE(
      VerdictWords::brief(session_.answer().estimate->verdict).contains(QStringLiteral("if")));
}

TEST_F(EstimateModelsTest, AHostThatIsTooSmallIsNamedAndRelieved) {
  constexpr std::int64_t kSmall = 32'000'000'000;
  ask(session_, offloading(kSmall).c_str());
  const Estimate now = *session_.answer().estimate;
  ASSERT_EQ(now.verdict.limited_by, "host");
  EXPECT_TRUE(VerdictWords::brief(now.verdict).endsWith(QStringLiteral("host memory")));
  EXPECT_TRUE(VerdictWords::sentence(now).startsWith(QStringLiteral("No: each host lacks ")));
  EXPECT_TRUE(VerdictWords::need(now).contains(text(format_bytes(now.verdict.host.needed))));
  session_.find_fixes_now();
  ASSERT_FALSE(session_.fixes().empty());
  const Fix best = session_.fixes().front();
  EXPECT_LT(best.after.verdict.host.needed, now.verdict.host.needed);
  session_.apply(best);
  EXPECT_TRUE(session_.answer().estimate->verdict.fits);
}

TEST_F(EstimateModelsTest, WhatHelpsAJobThatFitsMakesItFasterAndFits) {
  ask(session_, R"({"model": "llama-3.2-1b", "cluster": "4xH100-80GB", "checkpointing": "full"})");
  session_.find_fixes_now();
  ASSERT_FALSE(session_.fixes().empty());
  const double before = session_.answer().estimate->time.tokens_per_second;
  const Fix best = session_.fixes().front();
  EXPECT_TRUE(Fixes::words_of(best, session_.answer())
                  .effect.contains(QStringLiteral("× the tokens per second")));
  session_.apply(best);
  EXPECT_TRUE(session_.answer().estimate->verdict.fits);
  EXPECT_GT(session_.answer().estimate->time.tokens_per_second, before);
}

TEST_F(EstimateModelsTest, TheRoomForMicroBatchesIsWhatFits) {
  ask(session_, R"({"model": "llama-3.2-1b", "cluster": "4xH100-80GB", "checkpointing": "full"})");
  session_.find_fixes_now();
  ASSERT_TRUE(session_.headroom() && session_.headroom()->surely);
  const std::int64_t surely = *session_.headroom()->surely;
  session_.change_plan([&](Plan& plan) { plan.workload.micro_batch = surely; });
  EXPECT_TRUE(session_.answer().estimate->verdict.fits);
  session_.change_plan([&](Plan& plan) { plan.workload.micro_batch = surely + 1; });
  EXPECT_FALSE(session_.answer().estimate->verdict.fits);
  EXPECT_EQ(VerdictWords::headroom({1, 2}).toStdString(),
            "Surely up to micro-batch 1, probably up to 2.");
  EXPECT_EQ(VerdictWords::headroom({}).toStdString(), "");
}

TEST_F(EstimateModelsTest, WhatANewJobBeginsWithIsAssumedUntilItIsChosen) {
  JobDocument& document = session_.document();
  document.start_new();
  document.set("/model", "7B");
  document.set("/cluster", "4x40GB");
  const auto says_assumed = [&] {
    const auto& assumed = session_.answer().job->assumed;
    return std::find(assumed.begin(), assumed.end(), "checkpointing: full") != assumed.end();
  };
  EXPECT_TRUE(document.assumes("/checkpointing"));
  EXPECT_TRUE(says_assumed());
  document.set("/checkpointing", "full");  // the same, but chosen
  EXPECT_FALSE(document.assumes("/checkpointing"));
  EXPECT_FALSE(says_assumed());
  document.undo_stack().undo();
  EXPECT_TRUE(says_assumed());
}

TEST_F(EstimateModelsTest, ParametersAloneOnTheHostAreNotAll) {
  ask(session_, R"({"model": "llama-2-7b", "cluster": "4xA100-80GB", "checkpointing": "full",
      "framework": {"name": "deepspeed", "zero_stage": 3, "offload_param": "cpu"}})");
  ASSERT_TRUE(session_.answer().job);
  const TrainingField field = TrainingFields::offload();
  const QVariant now = field.read(*session_.answer().job);
  const auto offered = field.offered(*session_.answer().job);
  const auto at =
      std::find_if(offered.begin(), offered.end(), [&](const Choice& c) { return c.value == now; });
  ASSERT_NE(at, offered.end());
  EXPECT_EQ(at->label, QStringLiteral("parameters to host"));
}

TEST_F(EstimateModelsTest, AnUnfinishedJobShowsWhatIsKnown) {
  ask(session_, R"({"cluster": "4xA100-40GB"})");
  EXPECT_FALSE(session_.answer().estimate);
  ASSERT_NE(session_.answer().the_cluster(), nullptr);
  EXPECT_EQ(session_.answer().the_cluster()->gpus_per_node, 4);
  ask(session_, R"({"model": "gpt2", "cluster": "4xA100-41GB"})");
  ASSERT_TRUE(session_.answer().error);
  EXPECT_EQ(session_.answer().error->key, "cluster");
  ASSERT_NE(session_.answer().the_model(), nullptr);
}

TEST_F(EstimateModelsTest, AnErrorIsWhollyInTheLanguageOfTheWindows) {
  ask(session_, R"({"model": "gpt2", "cluster": "4xA100-41GB"})");
  ASSERT_TRUE(session_.answer().error);
  const auto in = [&](const char* language) {
    QLocale::setDefault(QLocale(QLatin1String(language)));
    const QString words = Messages::of(*session_.answer().error);
    QLocale::setDefault(QLocale(QStringLiteral("en")));
    return words;
  };
  EXPECT_TRUE(in("en").contains(QStringLiteral("40GB or 80GB")));
  EXPECT_TRUE(in("ja").contains(QStringLiteral("40GB または 80GB")));
  EXPECT_TRUE(in("ko").contains(QStringLiteral("40GB 또는 80GB")));
}

TEST_F(EstimateModelsTest, EveryFixCanBeAppliedAndGivesWhatItPromised) {
  ask(session_, kTooLarge);
  session_.find_fixes_now();
  const std::vector<Fix> fixes = session_.fixes();
  ASSERT_FALSE(fixes.empty());
  for (const Fix& fix : fixes) {
    ask(session_, kTooLarge);
    session_.apply(fix);
    ASSERT_TRUE(session_.answer().estimate);
    EXPECT_EQ(session_.answer().estimate->device.point, fix.after.device.point)
        << fix.changes.front().what;
  }
}

TrainingField field_at(const char* pointer) {
  for (const TrainingField& field : TrainingFields::all())
    if (field.pointer == pointer) return field;
  ADD_FAILURE() << pointer;
  return {};
}

TEST_F(EstimateModelsTest, OnlyDegreesThatDivideGpusAndNetworkAreOffered) {
  const char* const kMegatron = R"({"model": "mixtral-8x7b", "cluster": "2x8xH100-80GB",
      "framework": "megatron", "workload": {"gradient_accumulation": 8}})";
  ask(session_, R"({"model": "llama-2-70b", "cluster": "4x8xH100-80GB", "framework": "megatron",
                    "parallel": {"tensor": 8, "pipeline": 2},
                    "workload": {"gradient_accumulation": 8}})");
  EXPECT_EQ(field_at("/parallel/tensor").offered(*session_.answer().job).size(), 5U);  // to 16
  field_at("/parallel/tensor").write(session_, 4);
  EXPECT_TRUE(session_.answer().estimate);
  for (const char* pointer : {"/parallel/tensor", "/parallel/pipeline", "/parallel/context",
                              "/parallel/expert", "/parallel/sequence"}) {
    ask(session_, kMegatron);
    ASSERT_TRUE(session_.answer().job) << pointer;
    const TrainingField field = field_at(pointer);
    const Job job = *session_.answer().job;
    ASSERT_TRUE(field.applies_to(job)) << pointer;
    const std::vector<Choice> offered = field.offered(job);
    EXPECT_GT(offered.size(), 2U) << pointer;
    for (const int degree : {1, 2, 3, 4, 5, 8, 16, 32}) {
      ask(session_, kMegatron);
      field.write(session_, degree);
      const bool is_offered = std::any_of(offered.begin(), offered.end(), [&](const Choice& c) {
        return c.value.toInt() == degree;
      });
      EXPECT_EQ(session_.answer().job.has_value(), is_offered) << pointer << " " << degree;
      if (is_offered && session_.answer().job) {
        EXPECT_EQ(field.read(*session_.answer().job).toInt(), degree);
      }
    }
  }
}

TEST_F(EstimateModelsTest, FieldsFollowTheKindOfTheJob) {
  const TrainingField kind = field_at("/workload/kind");
  ask(session_, R"({"model": "llama-3.2-1b", "cluster": "1xH100-80GB"})");
  EXPECT_FALSE(field_at("/workload/batch").applies_to(*session_.answer().job));
  kind.write(session_, QStringLiteral("inference"));
  ASSERT_TRUE(session_.answer().estimate);
  EXPECT_FALSE(field_at("/workload/micro_batch").applies_to(*session_.answer().job));
  const std::int64_t one = session_.answer().estimate->device.point;
  field_at("/workload/batch").write(session_, 16);
  ASSERT_TRUE(session_.answer().estimate);
  EXPECT_EQ(field_at("/workload/batch").read(*session_.answer().job), 16);
  EXPECT_GT(session_.answer().estimate->device.point, one);
  kind.write(session_, QStringLiteral("rlhf"));
  ASSERT_TRUE(session_.answer().estimate);
  for (const char* algorithm : {"sft", "reward", "dpo", "ppo", "grpo"}) {
    field_at("/workload/algorithm").write(session_, QString::fromLatin1(algorithm));
    ASSERT_TRUE(session_.answer().estimate) << algorithm;
    EXPECT_EQ(field_at("/workload/algorithm").read(*session_.answer().job),
              QString::fromLatin1(algorithm));
    EXPECT_EQ(field_at("/workload/prompt_length").applies_to(*session_.answer().job),
              algorithm == std::string("ppo") || algorithm == std::string("grpo"));
  }
  kind.write(session_, QStringLiteral("train"));
  EXPECT_TRUE(session_.answer().estimate);
}

TEST_F(EstimateModelsTest, EveryTrainingFieldShowsWhatWasWrittenToIt) {
  for (const TrainingField& field : TrainingFields::all()) {
    for (const Choice& choice : field.choices) {
      ask(session_, kTitleQuestion);
      if (choice.value == QStringLiteral("single")) continue;  // of one GPU only
      if (field.applies && !field.applies(*session_.answer().job)) continue;
      field.write(session_, choice.value);
      if (!session_.answer().job) {
        EXPECT_TRUE(session_.answer().error);  // a contradiction: said, not hidden
        continue;
      }
      EXPECT_EQ(field.read(*session_.answer().job), choice.value) << field.pointer;
    }
  }
}

}  // namespace
}  // namespace shardplan::gui
