// Runs of shardplan-validate as the windows watch them.
#include "models/validator_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gui_testing.h"
#include "job/fields.h"
#include "models/engine_job.h"
#include "models/run_models.h"
#include "support/subprocess.h"

namespace shardplan::gui {
namespace {

bool ends(const ValidatorRun& run) {
  return wait_for(run, &ValidatorRun::finished, [&] { return !run.is_running(); });
}

ValidatorRun::Request example(int steps) {
  return {example_engine_job(), QStringLiteral("example"), steps};
}

TEST(ValidatorRun, TellsEveryStepAndWhatWasMeasured) {
  ValidatorRun run;
  std::size_t seen_before_the_end = 0;
  QObject::connect(&run, &ValidatorRun::stepped, [&] {
    if (run.is_running()) seen_before_the_end = run.steps().size();
  });
  run.start(example(4));
  ASSERT_TRUE(ends(run));
  EXPECT_EQ(run.failure().toStdString(), "");
  ASSERT_TRUE(run.facts());
  EXPECT_EQ(run.facts()->ranks, 4);
  EXPECT_EQ(run.facts()->steps, 4);
  ASSERT_EQ(run.steps().size(), 4U);
  EXPECT_GT(seen_before_the_end, 0U);
  for (const RunStep& step : run.steps()) {
    ASSERT_TRUE(step.loss);
    EXPECT_NEAR(*step.loss, 5.5, 0.3);
    EXPECT_EQ(step.peak, run.facts()->predicted_peak);
  }
  for (const RunFigure& figure : run.figures())
    EXPECT_EQ(figure.predicted, figure.measured) << figure.id.toStdString();
  EXPECT_FALSE(run.record().is_null());
  for (const MeasuredRow& row : RunModels::rows(run)) {
    EXPECT_FALSE(row.measured.isEmpty()) << row.name.toStdString();
    EXPECT_TRUE(row.error == QStringLiteral("exact") || row.error.isEmpty())
        << row.name.toStdString() << ": " << row.error.toStdString();
  }
  EXPECT_EQ(RunModels::loss(run, {}).points.size(), 4U);
  EXPECT_EQ(RunModels::memory(run, {}).points.size(), 8U);
}

TEST(ValidatorRun, SaysWhyARunEnded) {
  ValidatorRun run;
  ValidatorRun::Request wrong = example(20);
  wrong.job["optimizer"]["lr"] = 1e38;
  wrong.job["run"]["scheduler"] = nullptr;
  run.start(wrong);
  ASSERT_TRUE(ends(run));
  EXPECT_THAT(run.failure().toStdString(), testing::HasSubstr("the loss is"));
  EXPECT_TRUE(run.record().is_null());
  wrong.job["model"] = "t5-base";
  run.start(wrong);
  ASSERT_TRUE(ends(run));
  EXPECT_THAT(run.failure().toStdString(), testing::HasSubstr("t5"));
  EXPECT_TRUE(run.steps().empty());
}

TEST(ValidatorRun, IsStoppedAndKeepsWhatItTold) {
  ValidatorRun run;
  run.start(example(1'000'000));
  ASSERT_TRUE(wait_for(run, &ValidatorRun::stepped, [&] { return !run.steps().empty(); }));
  run.stop();
  ASSERT_TRUE(ends(run));
  EXPECT_TRUE(run.was_stopped());
  EXPECT_TRUE(run.failure().isEmpty());
  EXPECT_FALSE(run.steps().empty());
  EXPECT_TRUE(run.record().is_null());
  run.start(example(2));
  ASSERT_TRUE(ends(run));
  EXPECT_FALSE(run.was_stopped());
  EXPECT_EQ(run.steps().size(), 2U);
}

/// The job that an answer means, as the engine runs it.
Json engine_job_of(const Session& session, EngineDevice device) {
  const Session& s = session;
  return engine_job(s.document().json(), *s.answer().job, "", device);
}

TEST(EngineJob, KeepsModelBatchStageAndOffload) {
  Session session;
  ask(session, R"({"model": "gpt2", "cluster": "2x40GB", "checkpointing": "full",
                   "framework": {"name": "deepspeed", "zero_stage": 2, "offload_optimizer": "cpu"},
                   "workload": {"micro_batch": 3, "sequence_length": 256}})");
  ASSERT_TRUE(session.answer().job);
  const Json job = engine_job_of(session, EngineDevice::host);
  EXPECT_EQ(job["framework"]["name"], "native");
  EXPECT_EQ(job["framework"]["zero_stage"], 2);
  EXPECT_EQ(job["framework"]["offload_optimizer"], "cpu");
  EXPECT_EQ(job["framework"]["device"], "host");
  EXPECT_EQ(job["workload"]["micro_batch"], 3);
  EXPECT_EQ(job["workload"]["sequence_length"], 256);
  Session native;
  native.document().replace(job);
  ASSERT_TRUE(native.answer().job) << native.answer().error->message.text;
  EXPECT_TRUE(runs_on_engine(*native.answer().job));
}

TEST(EngineJob, KeepsStatesAndParametersOnNvme) {
  Session session;
  ask(session, R"({"model": "gpt2", "cluster": "2x40GB", "checkpointing": "full",
                   "framework": {"name": "deepspeed", "ds_config": {
                     "train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true},
                     "zero_optimization": {"stage": 3,
                       "offload_optimizer": {"device": "nvme", "nvme_path": "/no/such/disk"},
                       "offload_param": {"device": "nvme", "nvme_path": "/no/such/disk"}}}}})");
  ASSERT_TRUE(session.answer().job);
  const Json there = engine_job_of(session, EngineDevice::gpus);
  EXPECT_EQ(there["framework"]["offload_optimizer"], "nvme");
  EXPECT_EQ(there["framework"]["offload_param"], "nvme");
  EXPECT_EQ(there["run"]["nvme"]["path"], "/no/such/disk");
  EXPECT_EQ(with_storage_here(there, "/tmp"), there);
  const Json here = engine_job_of(session, EngineDevice::host);
  EXPECT_FALSE(field_of(here, "/run/nvme/path"));
  EXPECT_EQ(with_storage_here(here, "/tmp")["run"]["nvme"]["path"], "/tmp");
  Session native;
  native.document().replace(here);
  ASSERT_TRUE(native.answer().job) << native.answer().error->message.text;
}

/// The engine updates on the host what is kept there.
TEST(EngineJob, KeepsStatesWhereParametersAre) {
  Session session;
  ask(session, R"({"model": "gpt2", "cluster": "2x40GB", "checkpointing": "full",
                   "framework": {"name": "deepspeed", "zero_stage": 3, "offload_param": "cpu"}})");
  ASSERT_TRUE(session.answer().job);
  const Json job = engine_job_of(session, EngineDevice::gpus);
  EXPECT_EQ(job["framework"]["offload_optimizer"], "cpu");
  Session native;
  native.document().replace(job);
  EXPECT_TRUE(native.answer().job) << native.answer().error->message.text;
}

TEST(EngineJob, OfEveryFrameworkIsOneThatTheEngineReads) {
  for (const char* framework : {"deepspeed", "ddp", "fsdp2", "megatron", "native"}) {
    Session session;
    ask(session, R"({"model": "gpt2", "cluster": "2x40GB", "checkpointing": "full"})");
    session.document().set("/framework", Json{{"name", framework}});
    ASSERT_TRUE(session.answer().job) << framework;
    Session native;
    native.document().replace(engine_job_of(session, EngineDevice::gpus));
    EXPECT_TRUE(native.answer().job) << framework << ": " << native.answer().error->message.text;
  }
}

TEST(EngineJob, IsStartedByALauncherOnSeveralMachines) {
  Session session;
  ask(session, R"({"model": "gpt2", "cluster": "2x8xH100"})");
  const QString several = cluster_command(*session.answer().job, QStringLiteral("job.json"));
  EXPECT_THAT(several.toStdString(), testing::HasSubstr("torchrun --nnodes 2 --nproc-per-node 8"));
  ask(session, R"({"model": "gpt2", "cluster": "4xH100"})");
  EXPECT_THAT(cluster_command(*session.answer().job, QStringLiteral("job.json")).toStdString(),
              testing::StartsWith("shardplan-validate job.json"));
}

}  // namespace
}  // namespace shardplan::gui
