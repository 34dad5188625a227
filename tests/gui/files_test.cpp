// Jobs and configurations that are opened, dropped and saved, good and bad.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "gui_testing.h"
#include "models/detected_machine.h"
#include "models/dropped_file.h"
#include "models/recent_files.h"
#include "models/saved_files.h"
#include "support/error_of.h"
#include "support/subprocess.h"

namespace shardplan::gui {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

QString configs(const char* path) {
  return QStringLiteral(SHARDPLAN_SOURCE_DIR "/configs/") + QString::fromUtf8(path);
}

TEST(DroppedFile, IsToldApartByItsContent) {
  JobDocument document;
  EXPECT_EQ(take_file(document, configs("jobs/llama-2-7b-zero3.json")), FileKind::job);
  EXPECT_EQ(document.path(), configs("jobs/llama-2-7b-zero3.json"));
  EXPECT_EQ(take_file(document, configs("deepspeed/zero2_buckets.json")), FileKind::ds_config);
  EXPECT_EQ(document.json().at("framework").at("ds_config").get<std::string>(),
            configs("deepspeed/zero2_buckets.json").toStdString());
  const TemporaryFolder folder;
  const std::string model = folder.file("config.json", R"({"model_type": "gpt2"})");
  EXPECT_EQ(take_file(document, QString::fromStdString(model)), FileKind::model);
  EXPECT_EQ(document.json().at("model").get<std::string>(), model);
}

TEST(DroppedFile, ADroppedConfigurationIsUsedAsItIs) {
  Session session;
  ask(session, R"({"model": "llama-2-7b", "cluster": "4xA100-40GB", "precision": "fp16-master"})");
  take_file(session.document(), configs("deepspeed/zero3_offload_cpu.json"));
  ASSERT_TRUE(session.answer().job) << session.answer().error->message.text;
  EXPECT_EQ(session.answer().job->plan.framework.deepspeed.zero.stage, 3);
}

TEST(DroppedFile, ATrainersFileBecomesTheJobOnItsMachine) {
  Session session;
  ask(session, R"({"model": "llama-2-7b", "cluster": "1xA100-80GB"})");
  QStringList left_out;
  const auto yes = [] { return true; };
  EXPECT_EQ(take_file(session.document(), configs("trainers/axolotl-qlora.yaml"), yes, &left_out),
            FileKind::trainer);
  ASSERT_TRUE(session.answer().job) << session.answer().error->message.text;
  const Plan& plan = session.answer().job->plan;
  EXPECT_EQ(session.document().json().at("cluster"), Json("1xA100-80GB"));
  EXPECT_EQ(plan.workload.sequence_length, 4096);
  EXPECT_EQ(session.document().json().at("trainer"), Json("axolotl"));
  ASSERT_TRUE(plan.workload.lora);
  EXPECT_EQ(plan.workload.lora->rank, 32);
  session.document().undo_stack().undo();
  EXPECT_EQ(session.document().json().at("model"), Json("llama-2-7b"));
}

TEST(DroppedFile, ATrainersFileWithoutAModelTrainsTheJobs) {
  const TemporaryFolder folder;
  const std::string path = folder.file("mine.yaml", "base_model_path: x\ntraining_args: 1\n");
  JobDocument document;
  document.replace(Json::parse(R"({"model": "gpt2", "cluster": "8xA100-40GB"})"));
  EXPECT_EQ(take_file(document, configs("trainers/accelerate-fsdp2.yaml")), FileKind::trainer);
  EXPECT_EQ(document.json().at("model"), Json("gpt2"));
  EXPECT_EQ(document.json().at("framework").at("name"), Json("fsdp2"));
  const Json before = document.json();
  EXPECT_THAT(error_text([&] { take_file(document, QString::fromStdString(path)); }),
              HasSubstr("mine.yaml"));
  EXPECT_EQ(document.json(), before);
}

TEST(DroppedFile, AMalformedOneIsAMessageAndChangesNothing) {
  const TemporaryFolder folder;
  JobDocument document;
  const Json before = document.json();
  for (const char* bad : {"", "{", "[1, 2]", "{\"a\": 1}", "\"text\"", "\xff\xfe"}) {
    const std::string path = folder.file("bad.json", bad);
    EXPECT_THAT(error_text([&] { take_file(document, QString::fromStdString(path)); }),
                HasSubstr("bad.json"))
        << bad;
  }
  EXPECT_THAT(error_text([&] { take_file(document, QStringLiteral("nowhere.json")); }),
              HasSubstr("nowhere.json"));
  EXPECT_EQ(document.json(), before);
}

TEST(DroppedFile, AHugeOneIsRefusedWithoutBeingRead) {
  const TemporaryFolder folder;
  const std::string path = folder.file("huge.json", "{");
  fs::resize_file(path, 100'000'000);
  JobDocument document;
  // As a document it would be an error at its second byte: its size is what is said.
  EXPECT_THAT(error_text([&] { take_file(document, QString::fromStdString(path)); }),
              testing::AllOf(HasSubstr("huge.json"), HasSubstr("10000000 bytes")));
}

TEST(JobDocument, SavesWhatItWillOpenAndMovesRelativePaths) {
  const TemporaryFolder folder;
  JobDocument document;
  document.open(configs("jobs/llama-2-7b-zero3.json"));
  const QString path = QString::fromStdString(folder.path("moved.json"));
  document.save(path);
  EXPECT_FALSE(document.is_modified());
  Session session;
  session.document().open(path);
  EXPECT_TRUE(session.answer().estimate);
  document.set("/workload/sequence_length", 1024);
  EXPECT_TRUE(document.is_modified());
  EXPECT_THAT(error_text([&] { document.save(QStringLiteral("/nowhere/job.json")); }),
              HasSubstr("/nowhere/job.json"));
}

TEST(JobDocument, ChangesAreToldOnce) {
  JobDocument document;
  int changes = 0;
  QObject::connect(&document, &JobDocument::changed, [&] { ++changes; });
  document.set("/model", "gpt2");
  document.set("/model", "gpt2");
  document.set("/loss", nullptr);
  EXPECT_EQ(changes, 1);
}

TEST(SavedFiles, TheReportIsThatOfTheCommandLine) {
  const TemporaryFolder folder;
  Session session;
  ask(session, kTitleQuestion);
  const std::string path = folder.path("report.md");
  std::vector<double> shares;
  const Background::Control control{{}, [&](double share) { shares.push_back(share); }};
  const auto write = [&](const std::string& to, const Background::Control& c) {
    write_report(session.answer(), session.document().json(), session.workbench(), to, "ja", "1",
                 c);
  };
  write(path, control);
  EXPECT_EQ(shares.back(), 1);
  EXPECT_THAT(text_of(path), HasSubstr("7B"));
  EXPECT_THAT(error_text([&] { write(folder.path("report.doc"), control); }), HasSubstr(".html"));
  std::stop_source stop;
  stop.request_stop();
  write(folder.path("cancelled.md"), {stop.get_token(), control.progress});
  EXPECT_FALSE(fs::exists(folder.path("cancelled.md")));
}

TEST(RecentFiles, AreNewestFirstAndThere) {
  const TemporaryFolder folder;
  const QString a = QString::fromStdString(folder.file("a.json", "{}"));
  const QString b = QString::fromStdString(folder.file("b.json", "{}"));
  remember_file(a);
  remember_file(b);
  remember_file(a);
  EXPECT_EQ(recent_files(), QStringList({a, b}));
  fs::remove(a.toStdString());
  EXPECT_EQ(recent_files(), QStringList({b}));
}

TEST(DetectedMachine, ReadsWhatLinuxTells) {
  const TemporaryFolder root;
  const auto write = [&](const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(root.path(path)).parent_path());
    root.file(path, text);
  };
  for (const char* gpu : {"0000:01:00.0", "0000:02:00.0"})
    write(std::string("proc/driver/nvidia/gpus/") + gpu + "/information",
          "Model: \t\t NVIDIA A100-SXM4-40GB\nIRQ: 1\n");
  write("proc/meminfo", "MemTotal:       1048576 kB\nMemFree: 1 kB\n");
  write("sys/block/nvme0n1/size", "2000\n");
  write("sys/block/sda/size", "5000\n");
  const DetectedMachine machine = detect_machine(root.path(""));
  EXPECT_EQ(machine.gpus.size(), 2U);
  EXPECT_EQ(machine.host_memory, 1048576 * 1024LL);
  EXPECT_EQ(machine.nvme, 2000 * 512);
  const Json cluster = cluster_of(machine, load_workbench().hardware);
  EXPECT_EQ(cluster["gpu"].get<std::string>(), "A100-SXM4-40GB");
  EXPECT_EQ(cluster["gpus_per_node"].get<int>(), 2);
}

TEST(DetectedMachine, WithoutAKnownGpuThereIsNone) {
  const HardwareCatalog hardware = load_workbench().hardware;
  EXPECT_TRUE(cluster_of({}, hardware).is_null());
  EXPECT_TRUE(cluster_of({.gpus = {"NVIDIA Nothing"}}, hardware).is_null());
}

}  // namespace
}  // namespace shardplan::gui
