// All options of a job, as the training page lists them.
#include <gtest/gtest.h>

#include <QAbstractItemModelTester>
#include <QLocale>
#include <set>

#include "gui_testing.h"
#include "job/fields.h"
#include "load/options.h"
#include "lowering/rlhf/roles.h"
#include "models/option_rows.h"
#include "options/groups.h"
#include "options/tables.h"

namespace shardplan::gui {
namespace {

constexpr const char* kPpo = R"({"model": "opt-1.3b", "cluster": "8xA100-80GB",
    "framework": {"name": "deepspeed", "zero_stage": 3},
    "workload": {"kind": "rlhf", "algorithm": "ppo", "micro_batch": 4, "prompt_length": 256,
                 "new_tokens": 256}})";
constexpr const char* kServing = R"({"model": "llama-3.1-8b", "cluster": "1xH100-80GB",
    "workload": {"kind": "inference", "batch": 8, "prompt_length": 1024, "new_tokens": 64}})";

struct Listed {
  explicit Listed(const char* job) {
    QLocale::setDefault(QLocale(QStringLiteral("en")));
    ask(session, job);
    EXPECT_TRUE(session.answer().job);
    model.refresh();
  }
  QVariant at(const char* pointer, int role = Qt::DisplayRole) {
    const int row = model.row_of(pointer);
    EXPECT_GE(row, 0) << pointer;
    return model.index(row, OptionsModel::kValue).data(role);
  }
  void set(const char* pointer, const char* value) {
    const int row = model.row_of(pointer);
    ASSERT_GE(row, 0) << pointer;
    model.setData(model.index(row, OptionsModel::kValue), QLatin1String(value));
    model.refresh();
  }
  std::optional<Json> said(const char* pointer) {
    return field_of(session.document().json(), pointer);
  }

  Session session;
  OptionsModel model{session};
};

TEST(Options, AreThoseOfEveryTableThatApplies) {
  Listed any(kTitleQuestion);
  const QAbstractItemModelTester tester(&any.model);
  std::set<std::string> seen;
  for (const char* job : {kTitleQuestion, kPpo, kServing,
                          R"({"model": "7B", "cluster": "8x80GB", "framework": "fsdp2"})",
                          R"({"model": "7B", "cluster": "8x80GB", "framework": "fsdp1"})",
                          R"({"model": "7B", "cluster": "8x80GB", "framework": "ddp"})",
                          R"({"model": "7B", "cluster": "1x80GB", "framework": "single"})",
                          R"({"model": "7B", "cluster": "8x80GB", "framework": "native"})",
                          R"({"model": "7B", "cluster": "8x80GB", "framework": "megatron"})"}) {
    Listed listed(job);
    for (int row = 0; row < listed.model.rowCount(); ++row)
      seen.insert(listed.model.row(row).pointer);
  }
  for (const auto& [group, scope] : all_scoped_options()) {
    if (!scope.of_run) continue;  // of pages of their own
    for (const ListedOption& option : group.options) {
      if (option.info->kind == OptionKind::block) continue;
      std::string pointer = "/" + std::string(group.path) + (group.path.empty() ? "" : "/") +
                            std::string(option.info->key);
      std::replace(pointer.begin(), pointer.end(), '.', '/');
      EXPECT_TRUE(seen.contains(pointer)) << group.name << ": " << pointer;
    }
  }
}

TEST(Options, AreListedOnce) {
  for (const char* job : {kTitleQuestion, kPpo, kServing}) {
    std::set<std::string> seen;
    for (const OptionRow& row : option_rows(*Listed(job).session.answer().job))
      EXPECT_TRUE(seen.insert(row.pointer).second) << row.pointer;
  }
}

TEST(Options, AreWrittenByTheirKindAndTakenBack) {
  Listed l(R"({"model": "llama-2-7b", "cluster": "1x80GB", "framework": "single"})");
  l.set("/compile/mode", "reduce-overhead");
  EXPECT_EQ(l.said("/compile/mode"), Json("reduce-overhead"));
  EXPECT_EQ(l.at("/compile").toString(), QStringLiteral("true"));
  EXPECT_TRUE(l.session.answer().job->plan.compile);
  l.set("/compile", "");
  EXPECT_FALSE(l.said("/compile"));
  l.set("/kernels", "rope, swiglu");
  EXPECT_EQ(l.said("/kernels"), Json({"rope", "swiglu"}));
  l.set("/gradient_clipping", "0.5");
  EXPECT_EQ(l.said("/gradient_clipping"), Json(0.5));
  EXPECT_TRUE(l.session.answer().job);
  l.set("/gradient_clipping", "");
  EXPECT_FALSE(l.said("/gradient_clipping"));
}

TEST(Options, OfPoliciesAndPrecisionGoIntoTheTextsPlace) {
  Listed l(R"({"model": "7B", "cluster": "8x80GB", "framework": "fsdp2",
               "checkpointing": "full", "precision": "bf16-autocast"})");
  EXPECT_EQ(l.at("/checkpointing/policy").toString(), QStringLiteral("full"));
  l.set("/checkpointing/policy", "blocks");
  EXPECT_EQ(l.said("/checkpointing"), Json({{"policy", "blocks"}}));
  l.set("/checkpointing/count", "8");
  EXPECT_EQ(l.said("/checkpointing"), Json({{"policy", "blocks"}, {"count", 8}}));
  l.set("/precision/linear", "fp8");
  EXPECT_EQ(l.said("/precision/preset"), Json("bf16-autocast"));
}

TEST(Options, MakeCriticAndRewardModelsEditable) {
  Listed l(kPpo);
  const auto critic = [&]() -> const Role& {
    for (const Role& role : l.session.answer().job->rlhf->roles)
      if (role.kind == RoleKind::critic) return role;
    throw std::logic_error("no critic");
  };
  const auto before = critic().model.parameter_count();
  l.set("/workload/models/critic/model", "opt-350m");
  ASSERT_TRUE(l.session.answer().job);
  EXPECT_LT(critic().model.parameter_count(), before);
  l.set("/workload/models/reward/idle", "host");
  ASSERT_TRUE(l.session.answer().job);
  EXPECT_EQ(l.said("/workload/models/reward/idle"), Json("host"));
  l.set("/workload/models/critic/model", "");
  EXPECT_FALSE(l.said("/workload/models/critic"));
  EXPECT_EQ(critic().model.parameter_count(), before);
}

TEST(Options, OfAnEngineTurnItOnAndOff) {
  Listed l(kServing);
  l.set("/workload/engine/gpu_memory_utilization", "0.8");
  EXPECT_EQ(l.said("/workload/engine/gpu_memory_utilization"), Json(0.8));
  EXPECT_TRUE(l.session.answer().estimate);
  l.set("/workload/engine/gpu_memory_utilization", "");
  EXPECT_FALSE(l.said("/workload/engine"));
}

TEST(Options, ThatCannotBeAreKeptAndMarked) {
  Listed l(kTitleQuestion);
  l.set("/workload/gradient_accumulation", "many");
  EXPECT_EQ(l.said("/workload/gradient_accumulation"), Json("many"));
  EXPECT_FALSE(l.session.answer().job);
  EXPECT_TRUE(l.at("/workload/gradient_accumulation").toString().startsWith(QStringLiteral("✗")));
  EXPECT_TRUE(l.at("/workload/gradient_accumulation", Qt::ToolTipRole)
                  .toString()
                  .contains(QStringLiteral("many")));
  l.set("/workload/gradient_accumulation", "");
  EXPECT_TRUE(l.session.answer().job);
}

TEST(Options, SayWhatTheyCanBe) {
  EXPECT_EQ(OptionsModel::range(info_of(training_table(), "method")).left(4),
            QStringLiteral("full"));
  const QString share = OptionsModel::range(info_of(serving_table(), "gpu_memory_utilization"));
  EXPECT_EQ(share, QStringLiteral("0.01 to 1"));
}

}  // namespace
}  // namespace shardplan::gui
