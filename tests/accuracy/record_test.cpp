// Records in, errors out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "load/hardware.h"
#include "questions/accuracy.h"
#include "render/accuracy_text.h"

namespace shardplan {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

constexpr std::string_view kJob = R"({"schema": "shardplan.job/1", "model": {"mlp": [784, 128, 10]},
  "cluster": "1xH200", "framework": {"name": "single"}, "workload": {"micro_batch": 4},
  "precision": "fp32"})";

std::string record(const std::string& name, const std::string& measured,
                   std::string_view job = kJob) {
  return R"({"schema": "shardplan.record/1", "name": ")" + name + R"(", "job": )" +
         std::string(job) + R"(, "measured": )" + measured + R"(, "ranks": [], "losses": [1.0]})";
}

const HardwareCatalog& hardware() {
  static const HardwareCatalog catalog = load_hardware_catalog();
  return catalog;
}

TEST(Records, AreReadOneAFile) {
  const RecordList list = read_records(
      record("one", R"({"phases": {"model": 100, "step_end": 300}, "step_seconds": 0.5})"),
      "r.json", hardware());
  ASSERT_THAT(list.bad, SizeIs(0));
  ASSERT_THAT(list.records, SizeIs(1));
  const Record& r = list.records.front();
  EXPECT_EQ(r.name, "one");
  EXPECT_EQ(r.job.plan.workload.micro_batch, 4);
  EXPECT_EQ(r.measured[index_of(Figure::model)], 100);
  EXPECT_EQ(r.measured[index_of(Figure::step_end)], 300);
  EXPECT_EQ(r.measured[index_of(Figure::step_seconds)], 0.5);
  EXPECT_FALSE(r.measured[index_of(Figure::device)]);
}

TEST(Records, HaveTheDiskThatWasMeasuredBeforeTheStep) {
  std::string text = record("one", R"({"allocated_peak": 1000})");
  text.pop_back();
  text += R"(, "environment": {"nvme": {"bytes": 1, "read_bandwidth": 2e9, "write_bandwidth": 3e9},
    "gpu": "any"}})";
  const RecordList list = read_records(text, "r.json", hardware());
  ASSERT_THAT(list.bad, SizeIs(0));
  const std::optional<Nvme>& nvme = list.records.at(0).job.plan.cluster.nvme;
  ASSERT_TRUE(nvme);
  EXPECT_EQ(nvme->read_bandwidth, 2e9);
  EXPECT_EQ(nvme->write_bandwidth, 3e9);
}

TEST(Records, AreReadAsAListAndABadOneDoesNotStopTheOthers) {
  const std::string good = record("good", R"({"allocated_peak": 1000})");
  const std::string list_text =
      R"({"what": "w", "records": [)" + good + ", " +
      record("typo", R"({"allocated_peak": 1})",
             R"({"model": "llama-2-7b", "cluster": "1xH200", "framework": {"name": "fdsp2"}})") +
      ", " + record("nothing", R"({"phases": {}})") + R"(, {"name": "no-job"}, 7, )" +
      record("last", R"({"device": 5})") + "]}";
  const RecordList list = read_records(list_text, "list.json", hardware());
  ASSERT_THAT(list.records, SizeIs(2));
  EXPECT_EQ(list.records[0].name, "good");
  EXPECT_EQ(list.records[1].name, "last");
  std::vector<std::string> bad;
  for (const Diagnostic& d : list.bad) bad.push_back(to_string(d));
  EXPECT_THAT(bad, ElementsAre(HasSubstr("record 'typo'"), HasSubstr("record 'nothing'"),
                               HasSubstr("record 'no-job'"), HasSubstr("record 'records[4]'")));
  EXPECT_THAT(bad[0], HasSubstr("fsdp2"));
}

TEST(Records, NameTheFileThatIsNoJson) {
  const RecordList list = read_records("{", "broken.json", hardware());
  ASSERT_THAT(list.bad, SizeIs(1));
  EXPECT_EQ(list.bad[0].file, "broken.json");
}

TEST(Records, AreFoundInAFolderBesideOtherDocuments) {
  const fs::path folder = fs::path(testing::TempDir()) / "shardplan_record_test";
  fs::create_directories(folder / "deeper");
  const auto write = [&](const char* name, const std::string& text) {
    std::ofstream(folder / name) << text;
  };
  write("b.json", record("b", R"({"device": 5})"));
  write("deeper/a.json", record("a", R"({"device": 5})"));
  write("split.json", R"({"schema": "shardplan.split/1", "fit": ["b"]})");
  write("notes.txt", "not a record");
  const RecordList list = load_records({folder.string()}, hardware());
  fs::remove_all(folder);
  EXPECT_THAT(list.bad, SizeIs(0));
  ASSERT_THAT(list.records, SizeIs(2));
  EXPECT_EQ(list.records[0].name, "b");
  EXPECT_EQ(list.records[1].name, "a");
}

TEST(Records, MissingPathsAreBadRecords) {
  const RecordList list = load_records({"/nowhere/record.json"}, hardware());
  ASSERT_THAT(list.bad, SizeIs(1));
  EXPECT_THAT(to_string(list.bad[0]), HasSubstr("/nowhere/record.json"));
}

TEST(RelativeError, IsSignedAndOfWhatWasMeasured) {
  EXPECT_DOUBLE_EQ(*relative_error(110, 100), 0.1);
  EXPECT_DOUBLE_EQ(*relative_error(90, 100), -0.1);
  EXPECT_FALSE(relative_error(90, std::nullopt));
  EXPECT_FALSE(relative_error(std::nullopt, 90));
  EXPECT_FALSE(relative_error(90, 0));
}

/// Two records whose measured peaks are `a` and `b` times what is predicted.
Accuracy two(double a, double b) {
  RecordList list = read_records(R"({"records": [)" + record("a", R"({"allocated_peak": 1})") +
                                     ", " + record("b", R"({"allocated_peak": 1})") + "]}",
                                 "two.json", hardware());
  const Accuracy first = compare_with_records(list, AccuracyGroup::model);
  const double predicted = *first.comparisons[0].predicted[index_of(Figure::allocated_peak)];
  list.records[0].measured[index_of(Figure::allocated_peak)] = predicted * a;
  list.records[1].measured[index_of(Figure::allocated_peak)] = predicted * b;
  return compare_with_records(list, AccuracyGroup::model);
}

TEST(CompareWithRecords, SummarisesMeanSignedMeanAndTheWorst) {
  const Accuracy a = two(0.8, 2.0);  // errors +25 % and -50 %
  ASSERT_THAT(a.groups, SizeIs(1));
  EXPECT_EQ(a.groups[0].name, "mlp");
  const ErrorSummary& s = a.groups[0].figures[index_of(Figure::allocated_peak)];
  EXPECT_EQ(s.count, 2);
  EXPECT_NEAR(s.mean_absolute, 0.375, 1e-9);
  EXPECT_NEAR(s.mean_signed, -0.125, 1e-9);
  EXPECT_NEAR(s.largest, -0.5, 1e-9);
  EXPECT_EQ(s.worst, "b");
  EXPECT_EQ(a.groups[0].figures[index_of(Figure::device)].count, 0);
}

TEST(AccuracyOutput, SaysTheSameInEveryFormat) {
  const Accuracy a = two(0.8, 2.0);
  EXPECT_THAT(accuracy_text(a, false), HasSubstr("37.50/50.00"));
  EXPECT_THAT(accuracy_text(a, false), Not(HasSubstr("a (single, mlp, fp32)")));
  EXPECT_THAT(accuracy_text(a, true), HasSubstr("a (single, mlp, fp32)"));
  const Json json = accuracy_json(a);
  EXPECT_NEAR(json["all"]["figures"]["allocated_peak"]["mean_error"].get<double>(), -0.125, 1e-9);
  EXPECT_EQ(json["records"][1]["name"], "b");
  EXPECT_NEAR(json["records"][1]["figures"]["allocated_peak"]["error"].get<double>(), -0.5, 1e-9);
  EXPECT_THAT(accuracy_csv(a), HasSubstr("b,single,mlp,fp32,allocated_peak,"));
  EXPECT_THAT(accuracy_csv(a), HasSubstr(",-0.500000\n"));
}

Job job(const std::string& framework, const std::string& cluster) {
  const std::string text = R"({"model": {"mlp": [1000, 1000, 1000]}, "cluster": ")" + cluster +
                           R"(", "framework": )" + framework + "}";
  return load_job(parse_json(text, "job.json"), "job.json", {.hardware = &hardware()});
}

TEST(PeerRules, AreThePublishedFormulas) {
  const std::int64_t psi = 2 * (1000 * 1000 + 1000), layer = 1000 * 1000 + 1000;
  const Job single = job(R"({"name": "single"})", "1xH200");
  EXPECT_EQ(flat_sixteen_bytes(single.model, single.plan), 16 * psi);
  EXPECT_EQ(deepspeed_zero2_estimate(single.model, single.plan), 20 * psi);
  EXPECT_EQ(accelerate_estimate(single.model, single.plan), 8 * psi);
  EXPECT_FALSE(deepspeed_zero3_estimate(single.model, single.plan));
  const Job zero2 = job(R"({"name": "deepspeed", "zero_stage": 2})", "4xH200");
  EXPECT_EQ(flat_sixteen_bytes(zero2.model, zero2.plan), 16 * psi);
  EXPECT_EQ(deepspeed_zero2_estimate(zero2.model, zero2.plan), 2 * psi + 18 * psi / 4);
  EXPECT_FALSE(accelerate_estimate(zero2.model, zero2.plan));
  const Job zero3 = job(R"({"name": "deepspeed", "zero_stage": 3})", "4xH200");
  EXPECT_EQ(flat_sixteen_bytes(zero3.model, zero3.plan), 4 * psi);
  EXPECT_EQ(deepspeed_zero3_estimate(zero3.model, zero3.plan), 4 * layer + 18 * psi / 4);
  const Job offloaded = job(
      R"({"name": "deepspeed", "zero_stage": 3, "offload_optimizer": "cpu", "offload_param": "cpu"})",
      "4xH200");
  EXPECT_EQ(deepspeed_zero3_estimate(offloaded.model, offloaded.plan), 4 * layer);
}

}  // namespace
}  // namespace shardplan
