// The time model: kernels, streams, and what a step's seconds are made of.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "estimate/estimate.h"
#include "load/calibration.h"
#include "load/hardware.h"
#include "load/job.h"
#include "lowering/lower.h"
#include "support/program_testing.h"
#include "timing/clocks.h"
#include "timing/timeline.h"

namespace shardplan {
namespace {

const HardwareCatalog& hardware() {
  static const HardwareCatalog catalog = load_hardware_catalog();
  return catalog;
}

Job job_of(const std::string& text) {
  return load_job(parse_json(text, "test"), "test", {&hardware(), ""});
}

Job job_on(const std::string& cluster, const std::string& framework,
           const std::string& workload = R"({"micro_batch": 2, "sequence_length": 1024})") {
  return job_of(R"({"model": "llama-3.2-1b", "cluster": ")" + cluster + R"(", "framework": )" +
                framework + R"(, "workload": )" + workload + R"(, "precision": "bf16-autocast"})");
}

Program program_of(const Job& job) {
  return lower(job.model, job.plan, run_segments(job.model, job.plan), 0);
}

/// A GPU of round numbers.
GpuPeaks round_gpu() {
  return {.fp32 = 1e13, .half = 1e14, .memory = 1e12, .multiprocessors = 100, .slots = 1e13};
}

Kernel product(std::int64_t m, std::int64_t n, std::int64_t k) {
  Kernel p;
  p.kind = KernelKind::product;
  p.type = DType::bf16;
  p.m = m;
  p.n = n;
  p.k = k;
  return p;
}

double seconds(const Kernel& k) {
  return kernel_seconds(k, round_gpu(), load_calibration().time.kernels);
}

/// Rows begin at multiples of their width, however many there are.
TEST(KernelTime, AsksWidthsOfAProductToBeMultiplesAndNotItsRows) {
  EXPECT_NEAR(seconds(product(2731, 1024, 3072)) / seconds(product(2736, 1024, 3072)), 1, 0.001);
  Kernel gradient = product(3072, 1024, 2731), aligned = product(3072, 1024, 2736);
  EXPECT_GT(seconds(gradient), 2 * seconds(aligned));
  gradient.sums_rows = aligned.sums_rows = true;
  EXPECT_LE(seconds(gradient), seconds(aligned));
  EXPECT_GT(seconds(product(2736, 1028, 3072)), 2 * seconds(product(2736, 1032, 3072)));
}

TEST(KernelTime, IsNeverLessThanTheDatasheetAllows) {
  for (const std::int64_t n : {64, 128, 1000, 4096, 16384})
    EXPECT_GT(seconds(product(n, n, n)), ideal_seconds(product(n, n, n), round_gpu())) << n;
}

TEST(KernelTime, StepsWhenAProductNeedsOneMoreWaveOfTiles) {
  // 100 multiprocessors: 10 × 10 tiles of 128 are one wave, 10 × 11 are two.
  const double one = seconds(product(1280, 1280, 8192));
  const double two = seconds(product(1280, 1408, 8192));
  EXPECT_GT(two / one, 1.3);
  EXPECT_NEAR(seconds(product(1280, 1272, 8192)) / one, 1.0, 0.01);
}

TEST(KernelTime, IsLongerForWidthsThatTensorCoresCannotLoad) {
  EXPECT_GT(seconds(product(8192, 50257, 768)), 3 * seconds(product(8192, 50304, 768)));
}

TEST(KernelTime, ReadsWhatAProductIsAddedTo) {
  Kernel low = product(65536, 4096, 16);  // its result is nearly all that it moves
  const double alone = seconds(low);
  low.adds = true;
  // Twice as many bytes, and its tiles' multiplications before them.
  EXPECT_GT(seconds(low), 2 * alone);
  EXPECT_LT(seconds(low), 3 * alone);
}

TEST(KernelTime, SparesHalfOfTheSquareOfCausalAttention) {
  Kernel a;
  a.kind = KernelKind::attention;
  a.type = DType::bf16;
  a.m = a.n = 16384;
  a.k = 128;
  a.batch = 64;
  const double whole = seconds(a);
  a.causal = true;
  EXPECT_NEAR(seconds(a) / whole, 0.5, 0.05);
}

TEST(KernelTime, FillsNarrowHeadsOfFusedAttentionUp) {
  Kernel a;
  a.kind = KernelKind::attention;
  a.type = DType::bf16;
  a.m = a.n = 1024;
  a.batch = 64;
  const auto wide = [&](std::int64_t width) {
    a.k = width;
    return seconds(a);
  };
  constexpr double kMoved = 0.03;  // of the time: narrower operands are read as they are
  EXPECT_NEAR(wide(72), wide(128), kMoved * wide(128));
  EXPECT_NEAR(wide(96), wide(128), kMoved * wide(128));
  EXPECT_NEAR(wide(32), wide(64), kMoved * wide(64));
  EXPECT_LT(wide(64), wide(72));
  EXPECT_LT(wide(128), wide(160));
  a.masked = true;  // another kernel
  EXPECT_LT(wide(72), wide(128));
}

struct Case {
  const char* name;
  const char* cluster;
  const char* framework;
};
constexpr Case kCases[] = {
    {"single", "1xH200", R"({"name": "single"})"},
    {"ddp", "4xH200", R"({"name": "ddp"})"},
    {"fsdp2", "4xH200", R"({"name": "fsdp2", "reshard_after_forward": true})"},
    {"fsdp2 offload", "4xH200",
     R"({"name": "fsdp2", "reshard_after_forward": true, "cpu_offload": true})"},
    {"zero 1", "4xH200", R"({"name": "deepspeed", "zero_stage": 1})"},
    {"zero 2", "2x8xH100", R"({"name": "deepspeed", "zero_stage": 2})"},
    {"zero 3", "2x8xH100", R"({"name": "deepspeed", "zero_stage": 3})"},
};

TEST(Timeline, IsTheSameWhetherLayersAreRunOneByOneOrInAStride) {
  for (const Case& c : kCases) {
    const Job job = job_on(c.cluster, c.framework);
    const Program program = program_of(job);
    Program unrolled = program;
    unrolled.events.clear();
    unroll(program, 0, program.events.size(), unrolled.events);
    const TimeRates rates = load_calibration().time;
    const StepTimes fast = simulate_time(program, job.plan, rates);
    const StepTimes slow = simulate_time(unrolled, job.plan, rates);
    EXPECT_NEAR(fast.step, slow.step, 1e-9 * slow.step) << c.name;
    EXPECT_NEAR(fast.idle, slow.idle, 1e-9 * slow.step) << c.name;
    EXPECT_NEAR(fast.exposed_communication, slow.exposed_communication, 1e-9 * slow.step) << c.name;
  }
}

TEST(Timeline, IsTheSameKernelByKernelAndItsSpansDoNotOverlapOnAStream) {
  for (const Case& c : kCases) {
    const Job job = job_on(c.cluster, c.framework);
    const Program program = program_of(job);
    const TimeRates rates = load_calibration().time;
    const StepTimes fast = simulate_time(program, job.plan, rates);
    Trace trace;
    const StepTimes traced = simulate_time(program, job.plan, rates, &trace);
    EXPECT_NEAR(fast.step, traced.step, 1e-9 * fast.step) << c.name;
    double until = 0, busy = 0;
    for (const Span& span : trace.spans) {
      if (span.stream != Stream::compute || span.host) continue;
      EXPECT_GE(span.start, until - 1e-12) << c.name;
      until = span.start + span.seconds;
      busy += span.seconds;
    }
    EXPECT_LE(until, traced.step * (1 + 1e-12)) << c.name;
    EXPECT_LE(busy, (traced.compute + traced.optimizer) * (1 + 1e-9)) << c.name;
  }
}

TEST(Timeline, GivesEverySecondOfAStepToOnePart) {
  for (const Case& c : kCases) {
    const Job job = job_on(c.cluster, c.framework);
    const StepTimes t = simulate_time(program_of(job), job.plan, load_calibration().time);
    EXPECT_NEAR(t.compute + t.optimizer + t.exposed_communication + t.exposed_copies + t.idle,
                t.step, 1e-9 * t.step)
        << c.name;
    EXPECT_LT(t.ideal, t.step) << c.name;
  }
}

TEST(Timeline, HidesReductionsBehindTheBackwardPassButForTheLastBucket) {
  const auto times = [](const std::string& framework) {
    const Job job = job_on("4xH200", framework, R"({"micro_batch": 8, "sequence_length": 2048})");
    return simulate_time(program_of(job), job.plan, load_calibration().time);
  };
  const StepTimes views = times(R"({"name": "ddp", "gradient_as_bucket_view": true})");
  EXPECT_GT(views.communication, 0);
  EXPECT_GT(views.exposed_communication, 0);
  EXPECT_LT(views.exposed_communication, 0.1 * views.communication);
  // The gradients of other buckets are copied back meanwhile.
  const StepTimes copies = times(R"({"name": "ddp"})");
  EXPECT_LT(copies.exposed_communication, views.exposed_communication);
  EXPECT_GT(copies.step, views.step);
}

TEST(StreamClocks, HaveTheHostMakeAStepReadyOnceWhereItDoes) {
  const auto host_after_two = [](bool once) {
    StreamClocks clocks({.phase_seconds = 1, .ready_once = once});
    clocks.begin_phase(Phase::forward);
    clocks.begin_phase(Phase::backward);
    return clocks.at.host;
  };
  EXPECT_DOUBLE_EQ(host_after_two(false), 2);
  EXPECT_DOUBLE_EQ(host_after_two(true), 1);
}

TEST(StreamClocks, HaveTheHostGiveTheMessagesOfAnExchangeOneByOne) {
  StreamClocks clocks({.collective_seconds = 1, .message_seconds = 0.5});
  clocks.collective({.kind = Event::Kind::collective, .messages = 4, .seconds = 2});
  EXPECT_DOUBLE_EQ(clocks.at.host, 3);
  EXPECT_DOUBLE_EQ(clocks.at.communication, 5);
}

TEST(Timeline, WaitsForTheHostWhenKernelsAreShort) {
  const auto times = [](int tokens) {
    const Job job =
        job_on("1xH200", R"({"name": "single"})",
               R"({"micro_batch": 1, "sequence_length": )" + std::to_string(tokens) + "}");
    return simulate_time(program_of(job), job.plan, load_calibration().time);
  };
  EXPECT_GT(times(16).idle, 0.4 * times(16).step);
  EXPECT_LT(times(8192).idle, 0.1 * times(8192).step);
  // The host's time does not depend on the size of tensors.
  EXPECT_NEAR(times(16).step, times(32).step, 0.05 * times(16).step);
}

TEST(Timeline, TakesTurnsWithTheHostWhereLaunchesWait) {
  const TimeRates rates = load_calibration().time;
  for (const Case& c : kCases) {
    Job job = job_on(c.cluster, c.framework);
    const Program program = program_of(job);
    const StepTimes free = simulate_time(program, job.plan, rates);
    job.plan.launch_blocking = true;
    const StepTimes t = simulate_time(program, job.plan, rates);
    EXPECT_GT(t.step, free.step) << c.name;
    EXPECT_NEAR(t.exposed_communication, t.communication, 1e-9 * t.step) << c.name;
    EXPECT_NEAR(t.compute + t.optimizer + t.exposed_communication + t.exposed_copies + t.idle,
                t.step, 1e-9 * t.step)
        << c.name;
    Trace trace;
    EXPECT_NEAR(simulate_time(program, job.plan, rates, &trace).step, t.step, 1e-9 * t.step);
  }
}

Estimate tensor_parallel(const std::string& options, const std::string& parallel = "") {
  const Job job = job_of(R"({"model": "llama-3.1-8b", "cluster": "8xH100", "workload":
      {"micro_batch": 8, "sequence_length": 4096}, "framework": {"name": "megatron")" +
                         options + R"(}, "parallel": {"tensor": 8)" + parallel + "}}");
  return estimate(job.model, job.plan, load_calibration(), ReservedMemory::ratio);
}

/// Megatron Core's LinearWithGradAccumulationAndAsyncCommunication, Transformer Engine's Linear.
TEST(HiddenExchanges, OfInputGradientsRunBesideTheProductsOfWeightGradients) {
  for (const std::string parallel : {R"(, "sequence_parallel": false)", ""}) {
    const TimeEstimate waited =
        tensor_parallel(R"(, "async_tensor_model_parallel_allreduce": false)", parallel).time;
    const TimeEstimate beside = tensor_parallel("", parallel).time;
    EXPECT_NEAR(beside.communication_seconds, waited.communication_seconds, 1e-12);
    // A gather that runs ahead slows down what it runs beside.
    EXPECT_GE(beside.compute_seconds, (1 - 1e-9) * waited.compute_seconds);
    EXPECT_LT(beside.compute_seconds, 1.2 * waited.compute_seconds);
    EXPECT_LT(beside.exposed_communication_seconds, 0.85 * waited.exposed_communication_seconds);
    EXPECT_GT(beside.exposed_communication_seconds, 0.45 * waited.exposed_communication_seconds);
    EXPECT_LT(beside.step_seconds, waited.step_seconds);
  }
}

/// Our own engine with parameters in that place, and a drive that reads and writes as fast.
Estimate parameters_away(const char* place, const std::string& bandwidth) {
  const Job job = job_of(R"({"model": "llama-3.2-1b", "cluster": {"name": "2xH100", "nvme":
    {"bytes": 1000000000000, "read_bandwidth": )" +
                         bandwidth + R"(, "write_bandwidth": )" + bandwidth +
                         R"(}}, "precision": "bf16-pure", "checkpointing": "full",
    "framework": {"name": "native", "zero_stage": 3, "offload_optimizer": "cpu",
                  "offload_param": ")" +
                         place + R"("},
    "workload": {"micro_batch": 4, "sequence_length": 4096}})");
  return estimate(job.model, job.plan, load_calibration());
}

TEST(ParametersOnNvme, AreReadBesideThePassesAsFarAsTheDriveIsFast) {
  const auto seconds = [](const char* place, const std::string& bandwidth) {
    return parameters_away(place, bandwidth).time.step_seconds;
  };
  const double there = seconds("cpu", "1e9");
  ASSERT_GT(there, 0);
  EXPECT_NEAR(seconds("nvme", "1e15"), there, 0.01 * there);
  double bytes = 0;
  for (const TrafficLine& line : parameters_away("nvme", "1e9").traffic)
    if (line.link == LinkKind::nvme) bytes += static_cast<double>(line.bytes_per_step);
  // Two ranks share the drive; where it is slow it is what the step waits for.
  const double slow = 2 * bytes / 1e9;
  EXPECT_GE(seconds("nvme", "1e9"), slow);
  EXPECT_LE(seconds("nvme", "1e9"), slow + there);
  EXPECT_LT(seconds("nvme", "2e9"), seconds("nvme", "1e9"));
}

TEST(HiddenExchanges, RunInPartsBesideTheirProductsWithUserbuffers) {
  const Estimate whole = tensor_parallel(""),
                 parts = tensor_parallel(R"(, "tp_comm_overlap": true)");
  EXPECT_LT(parts.time.exposed_communication_seconds,
            0.7 * whole.time.exposed_communication_seconds);
  EXPECT_LT(parts.time.step_seconds, whole.time.step_seconds);
  // A part of a product fills the GPU worse, but nothing runs beside gathers that were issued
  // ahead.
  EXPECT_NEAR(parts.time.compute_seconds, whole.time.compute_seconds,
              0.02 * whole.time.compute_seconds);
  EXPECT_NEAR(parts.time.mfu * parts.time.step_seconds, whole.time.mfu * whole.time.step_seconds,
              1e-9);
  EXPECT_THROW(tensor_parallel(R"(, "tp_comm_overlap": true)", R"(, "sequence_parallel": false)"),
               InputError);
}

TEST(HiddenExchanges, SendTheSameBytesAndKeepTwelveBuffersOfHiddenStates) {
  const Estimate whole = tensor_parallel(""),
                 parts = tensor_parallel(R"(, "tp_comm_overlap": true)");
  EXPECT_EQ(parts.device.point - whole.device.point, 12LL * 8 * 4096 * 4096 * 2);
  EXPECT_EQ(parts.allocated.point, whole.allocated.point);
  ASSERT_EQ(parts.traffic.size(), whole.traffic.size());
  for (std::size_t i = 0; i < whole.traffic.size(); ++i)
    EXPECT_EQ(parts.traffic[i].bytes_per_step, whole.traffic[i].bytes_per_step)
        << whole.traffic[i].what;
}

/// Small products: the GPU waits for what starts them.
TEST(TimeEstimate, ChargesTransformerEnginesModulesToTheHost) {
  const auto estimated = [](const char* implementation) {
    const Job job = job_of(R"({"model": "llama-3.2-1b", "cluster": "1xH200", "workload":
        {"micro_batch": 1, "sequence_length": 128}, "framework": {"name": "megatron",
        "transformer_impl": ")" +
                           std::string(implementation) + "\"}}");
    return estimate(job.model, job.plan, load_calibration(), ReservedMemory::ratio);
  };
  const Estimate engine = estimated("transformer_engine"), local = estimated("local");
  // Of a local implementation's linear layers PyTorch's calls are counted.
  EXPECT_GT(engine.time.idle_seconds, 2.5 * local.time.idle_seconds);
  EXPECT_NEAR(engine.time.compute_seconds, local.time.compute_seconds, 1e-12);
  EXPECT_GT(engine.allocated.point,
            local.allocated.point);  // gradients that nobody reads, for good
}

/// Each launch of a kernel waits for its end and a little more; nothing else is changed.
TEST(TimeEstimate, ChargesEveryLaunchThatWaits) {
  Job job = job_on("1xH200", R"({"name": "single"})");
  const Program program = program_of(job);
  double launches = 0;
  for_each_event(program, [&](const Event& e, std::int64_t times) {
    if (e.kind != Event::Kind::compute) return;
    for_each_kernel(program, e, [&](const Kernel& k) {
      if (k.kind != KernelKind::none && k.kind != KernelKind::multi_tensor)
        launches += static_cast<double>(times * k.calls);
    });
  });
  TimeRates rates = load_calibration().time;
  rates.host.launch_wait = 0;
  job.plan.launch_blocking = true;
  const double without = simulate_time(program, job.plan, rates).step;
  rates.host.launch_wait = 1e-3;
  EXPECT_NEAR(simulate_time(program, job.plan, rates).step - without, 1e-3 * launches, 1e-6);
}

/// bitsandbytes updates tensor by tensor: the GPU has nothing to do while the host starts the next.
TEST(TimeEstimate, WaitsForEachTensorThatBitsandbytesUpdates) {
  const auto optimizer_seconds = [](const char* optimizer, double host) {
    Job job =
        job_of(std::string(R"({"model": "llama-3.2-1b", "cluster": "1xH200", "framework": {"name":
            "single"}, "precision": "bf16-pure", "optimizer": ")") +
               optimizer + R"(", "workload": {"micro_batch": 1, "sequence_length": 256}})");
    TimeRates rates = load_calibration().time;
    rates.host.usual = {};  // which slows such calls too
    rates.host.seconds[static_cast<std::size_t>(Issue::waited)] = host;
    return simulate_time(program_of(job), job.plan, rates).step;
  };
  constexpr double kTensors = 146;
  const double more = optimizer_seconds("adamw_8bit", 1e-3) - optimizer_seconds("adamw_8bit", 0);
  EXPECT_NEAR(more, kTensors * 1e-3, 1e-6);
  EXPECT_EQ(optimizer_seconds("adamw", 1e-3), optimizer_seconds("adamw", 0));
}

TEST(TimeEstimate, CountsRecomputationForHfuAndNotForMfu) {
  const auto estimated = [](const char* checkpointing) {
    const Job job = job_of(
        std::string(R"({"model": "llama-2-7b", "cluster": "1xH200", "framework": {"name": "single"},
            "precision": "bf16-pure", "workload": {"micro_batch": 1, "sequence_length": 2048},
            "checkpointing": ")") +
        checkpointing + "\"}");
    return estimate(job.model, job.plan, load_calibration(), ReservedMemory::ratio).time;
  };
  const TimeEstimate none = estimated("none"), full = estimated("full");
  EXPECT_NEAR(none.mfu * none.step_seconds, full.mfu * full.step_seconds, 1e-9);
  EXPECT_GT(full.hfu * full.step_seconds, 1.2 * none.hfu * none.step_seconds);
  // 6·N·tokens of the products, plus attention.
  EXPECT_NEAR(none.mfu * none.step_seconds * 989.5e12, 6 * 6.607e9 * 2048, 0.06 * 8.1e13);
}

}  // namespace
}  // namespace shardplan
