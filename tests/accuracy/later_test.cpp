// Steps that ran when the model stood, predicted before they ran: jobs that no other record has, on
// one, two and four GPUs, and DeepSpeed's options.
#include <set>

#include "load/calibration.h"
#include "peak_errors.h"

namespace shardplan::later_test {
namespace {

const RecordList& records() {
  static const RecordList list = [] {
    RecordList eager =
        records_asked_for({"later_1gpu", "later_2gpu_ddp", "later_2gpu_fsdp2", "later_4gpu_ddp",
                           "later_4gpu_fsdp2", "again_2gpu_fsdp2", "again_2gpu_deepspeed"});
    const RecordList deepspeed = records_asked_for({"deepspeed_2gpu"}, "later");
    eager.records.insert(eager.records.end(), deepspeed.records.begin(), deepspeed.records.end());
    eager.bad.insert(eager.bad.end(), deepspeed.bad.begin(), deepspeed.bad.end());
    return eager;
  }();
  return list;
}

/// Jobs that ran once more, on a host that did nothing else.
bool is_again(const Record& r) {
  return r.name.ends_with("-again");
}

bool is_eager(const Record& r) {
  return r.job.plan.framework.kind != FrameworkKind::deepspeed;
}

/// ZeRO-3 over a mixture of experts is predicted 5 % low; the cause is not known.
bool is_known_miss(const Record& r) {
  return !is_eager(r) && r.job.model.facts.model_type == "mixtral";
}

PeakErrors peaks_where(bool (*wanted)(const Record&)) {
  PeakErrors errors;
  for (const Record& r : records().records)
    if (wanted(r)) errors.add(r);
  return errors;
}

TEST(LaterRecords, ReadsEveryOne) {
  EXPECT_TRUE(records().bad.empty());
}

TEST(LaterRecords, HoldsThePeaksOfEagerPyTorch) {
  expect_within(peaks_where([](const Record& r) { return is_eager(r) && !is_again(r); }), 35, 0.17,
                0.8);
}

TEST(LaterRecords, HoldsThePeaksOfDeepSpeed) {
  expect_within(peaks_where([](const Record& r) { return !is_eager(r) && !is_known_miss(r); }), 15,
                0.02, 0.06);
}

TEST(LaterRecords, TokensPerSecondOfEagerPyTorchWithinEightPerCent) {
  const Calibration calibration = load_calibration();
  double sum = 0;
  std::set<std::int64_t> gpus;
  int count = 0;
  for (const Record& r : records().records) {
    if (!is_eager(r) || is_again(r)) continue;
    const Estimate e = estimate(r.job.model, r.job.plan, calibration, ReservedMemory::ratio);
    const double measured = *r.measured[index_of(Figure::step_seconds)];
    sum += std::abs(measured / e.time.step_seconds - 1);
    gpus.insert(r.job.plan.cluster.world());
    ++count;
  }
  EXPECT_EQ(count, 35);
  EXPECT_EQ(gpus, (std::set<std::int64_t>{1, 2, 4}));
  EXPECT_LE(sum / count, 0.08);
}

}  // namespace
}  // namespace shardplan::later_test
