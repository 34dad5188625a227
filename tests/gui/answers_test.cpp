// Answers to jobs of every kind: whole in each language, and fixes that do what they promise.
#include <gtest/gtest.h>

#include <QLocale>

#include "english.h"
#include "gui_testing.h"
#include "models/core_words.h"
#include "models/estimate_models.h"
#include "models/fixes.h"
#include "models/job_words.h"
#include "models/messages.h"
#include "models/verdict_words.h"
#include "models/word_translator.h"
#include "questions/compare.h"
#include "render/estimate_text.h"

namespace shardplan::gui {
namespace {

constexpr const char* kJobs[] = {
    R"({"model": "llama-3.2-1b", "cluster": "1xRTX4090", "framework": "single",
        "workload": {"method": "qlora", "micro_batch": 16, "sequence_length": 2048}})",
    R"({"model": "llama-3.2-1b", "cluster": "2x8xH100", "framework": "fsdp2", "compile": true})",
    R"({"model": "llama-3.2-1b", "cluster": "4xRTX4090", "checkpointing": "none",
        "framework": {"name": "deepspeed", "zero_stage": 2},
        "workload": {"micro_batch": 16, "sequence_length": 2048}})",
    R"({"model": {"model_type": "mixtral", "hidden_size": 1024, "num_hidden_layers": 8},
        "cluster": "8xA100-40GB", "framework": "megatron", "parallel": {"expert": 8},
        "workload": {"micro_batch": 4, "sequence_length": 4096}})",
    R"({"model": "llama-3.2-1b", "cluster": "1xRTX4090", "framework": "single",
        "workload": {"kind": "inference", "batch": 64, "prompt_length": 8192}})",
    R"({"model": "llama-3.1-8b", "cluster": "1xH100",
        "workload": {"kind": "inference", "prompt_length": 4096, "new_tokens": 512, "engine": {"engine": "vllm"}}})",
    R"({"model": "llama-3.1-8b", "cluster": "1xRTX4090",
        "workload": {"kind": "inference", "prompt_length": 65536, "new_tokens": 512, "engine": {"engine": "vllm"}}})",
    R"({"model": "qwen2.5-1.5b", "cluster": "1xA100-40GB", "framework": "fsdp2",
        "workload": {"kind": "rlhf", "algorithm": "grpo", "micro_batch": 4, "prompt_length": 512,
                     "new_tokens": 1024, "rollout": {"engine": "vllm"}}})"};

class Answers : public testing::TestWithParam<const char*> {
 protected:
  Answers() {
    QCoreApplication::installTranslator(&translator_);
    ask(session_, GetParam());
  }
  ~Answers() override {
    QCoreApplication::removeTranslator(&translator_);
    QLocale::setDefault(QLocale(QStringLiteral("en")));
  }

  /// Every sentence about the job and its answer.
  QStringList sentences() {
    const Answer& a = session_.answer();
    QStringList all{JobWords::subject(a),
                    JobWords::method(a),
                    JobWords::rates(a),
                    JobWords::memory_title(a),
                    JobWords::time_title(a),
                    VerdictWords::sentence(*a.estimate),
                    VerdictWords::need(*a.estimate)};
    for (const Share& part : EstimateModels::time(a)) all += {part.name, part.hint};
    for (const Fact& f : EstimateModels::phases(a)) all += {f.name, f.hint};
    for (const Fact& f : EstimateModels::traffic(a)) all += {f.name, f.first, f.hint};
    for (const Fact& f : EstimateModels::foundation(a, session_.workbench().calibration))
      all += {f.name, f.first};
    for (const Share& part :
         EstimateModels::breakdown(*a.estimate, a.job->plan, session_.workbench().calibration))
      all += part.name;
    for (std::size_t c = 0; c < kCategoryCount; ++c)
      all += words(what_it_is(static_cast<Category>(c), *a.estimate, a.job->plan));
    for (const Alternative& plan : compare_plans(*a.job, session_.workbench().calibration))
      all += words(plan.name);
    for (const Fix& fix : session_.fixes()) {
      const FixWords said = Fixes::words_of(fix, a);
      all += {said.what, said.verdict, said.effect};
    }
    return all;
  }

  Session session_;

 private:
  WordTranslator translator_;
};

TEST_P(Answers, AreWholeInEveryLanguage) {
  ASSERT_TRUE(session_.answer().estimate) << Messages::of(*session_.answer().error).toStdString();
  session_.find_fixes_now();
  for (const char* language : {"ja", "ko"}) {
    QLocale::setDefault(QLocale(QLatin1String(language)));
    for (const QString& sentence : sentences())
      EXPECT_FALSE(has_english(sentence)) << language << ": " << sentence.toStdString();
  }
}

TEST_P(Answers, HaveFixesThatDoWhatTheyPromise) {
  ASSERT_TRUE(session_.answer().estimate);
  session_.find_fixes_now();
  const Json asked = session_.document().json();
  const std::vector<Fix> fixes = session_.fixes();
  for (const Fix& fix : fixes) {
    const std::string what = Fixes::words_of(fix, session_.answer()).what.toStdString();
    session_.apply(fix);
    const auto& after = session_.answer().estimate;
    if (!after) {
      ADD_FAILURE() << what << ": no answer";
    } else {
      EXPECT_EQ(after->device.point, fix.after.device.point) << what;
      EXPECT_EQ(after->verdict.fits, fix.after.verdict.fits) << what;
    }
    session_.document().undo_stack().undo();
    EXPECT_EQ(session_.document().json(), asked) << what;
  }
}

INSTANTIATE_TEST_SUITE_P(OfEveryKind, Answers, testing::ValuesIn(kJobs));

}  // namespace
}  // namespace shardplan::gui
