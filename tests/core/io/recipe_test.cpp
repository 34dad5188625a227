// precision.linear: what linear layers multiply in, and where that is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "estimate/estimate.h"
#include "load/calibration.h"
#include "load/hardware.h"
#include "load/job.h"
#include "lowering/segments.h"

namespace shardplan::recipe_test {
namespace {

using ::testing::HasSubstr;

Job job_of(const std::string& linear, const std::string& more = R"(, "cluster": "1xH100")",
           const std::string& workload = R"("micro_batch": 2, "sequence_length": 1024)") {
  static const HardwareCatalog hardware = load_hardware_catalog();
  const std::string text = R"({"model": "llama-3.2-1b", "framework": {"name": "single"},
      "precision": {"preset": "bf16-pure", "linear": ")" +
                           linear + R"("}, "workload": {)" + workload + "}" + more + "}";
  return load_job(parse_json(text, "test"), "test", {&hardware, ""});
}

std::string refusal(const std::string& linear, const std::string& more,
                    const std::string& workload = R"("micro_batch": 2, "sequence_length": 1024)") {
  try {
    job_of(linear, more, workload);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

/// Bytes of products by their type, and what a block keeps.
struct BlockRun {
  std::int64_t narrow = 0, wide = 0, kept = 0, peak = 0;
};

BlockRun run_block(const Job& job) {
  const ModelRun run = run_segments(job.model, job.plan);
  BlockRun block;
  for (const auto* kernels :
       {&run.segments[1].forward.forward_kernels, &run.segments[1].backward.backward_kernels})
    for (const Kernel& k : *kernels)
      if (k.kind == KernelKind::product) ++(k.type == DType::e4m3 ? block.narrow : block.wide);
  for (const TapeEvent& e : run.segments[1].forward.forward) {
    if (e.kind == TapeEvent::Kind::alloc) block.kept += e.bytes;
    if (e.kind == TapeEvent::Kind::free) block.kept -= e.bytes;
    block.peak = std::max(block.peak, block.kept);
  }
  return block;
}

TEST(Recipe, MultipliesEveryLinearOfABlockInEightBits) {
  const BlockRun plain = run_block(job_of("bf16")), fp8 = run_block(job_of("fp8-rowwise"));
  EXPECT_EQ(plain.narrow, 0);
  EXPECT_EQ(fp8.narrow, 7 * 3);  // each linear's result, input gradient and weight gradient
  EXPECT_EQ(fp8.wide, plain.wide - 7 * 3);
}

/// torchao saves inputs and weights as they are; casting takes fp32 copies for a moment.
TEST(Recipe, KeepsWhatBf16KeepsAndNeedsMoreMeanwhile) {
  const BlockRun plain = run_block(job_of("bf16")), fp8 = run_block(job_of("fp8-tensorwise"));
  EXPECT_EQ(fp8.kept, plain.kept);
  // The down projection's input, 2,048 tokens of 8,192: scaled and clamped in fp32, and the result.
  EXPECT_GE(fp8.peak - plain.peak, 2 * 1024 * 8192 * (4 + 4 + 1) - 2 * 1024 * 8192 * 2 * 2);
}

/// Llama 3.2 1B: 2,048 tokens; a block's linears have these inputs, and weights of 60.8 M elements.
constexpr std::int64_t kTokens = 2048, kHidden = 2048, kFfn = 8192;
constexpr std::int64_t kWeights = 2 * kHidden * kHidden + 2 * kHidden * 512 + 3 * kHidden * kFfn;
constexpr std::int64_t kInputs = kTokens * (6 * kHidden + kFfn);  // of seven linears

/// In bf16 a block keeps its norms' results and the gated product for the linears alone; the
/// attention keeps its own result.
constexpr std::int64_t kKeptForLinears = 2 * kTokens * (2 * kHidden + kFfn);

TEST(Recipe, OfTransformerEngineKeepsEightBits) {
  const BlockRun plain = run_block(job_of("bf16")), fp8 = run_block(job_of("fp8-delayed"));
  EXPECT_EQ(fp8.kept - plain.kept, kInputs + 2 * kWeights - kKeptForLinears);
  EXPECT_EQ(fp8.narrow, 7 * 3);
}

TEST(Recipe, OfMxfp8KeepsWhatBf16Keeps) {
  const std::string b200 = R"(, "cluster": "1xB200")";
  EXPECT_EQ(run_block(job_of("mxfp8", b200)).kept, run_block(job_of("bf16", b200)).kept);
}

/// Four bits and a byte for sixteen of them, of every linear's input and weight.
TEST(Recipe, OfNvfp4KeepsFourBitsAndScales) {
  const std::string b200 = R"(, "cluster": "1xB200")";
  const BlockRun plain = run_block(job_of("bf16", b200)), fp4 = run_block(job_of("nvfp4", b200));
  EXPECT_EQ(fp4.kept - plain.kept, (kInputs + kWeights) * 9 / 16 - kKeptForLinears);
}

/// The larger share of what 8,192 tokens of Llama 3 8B keep goes, as was published.
TEST(Recipe, OfNvfp4SavesMemoryWhereTokensAreMany) {
  const auto peak = [](const std::string& linear) {
    const Job job =
        job_of(linear, R"(, "cluster": "1xB200")", R"("micro_batch": 8, "sequence_length": 2048)");
    return estimate(job.model, job.plan, load_calibration()).allocated.point;
  };
  EXPECT_LT(peak("nvfp4"), peak("bf16"));
  EXPECT_GE(peak("mxfp8"), peak("bf16"));
}

TEST(Recipe, OfBf16IsThePreset) {
  const Job job = job_of("bf16");
  EXPECT_EQ(job.plan.precision.name, "bf16-pure");
  EXPECT_TRUE(job.diagnostics.empty());
  EXPECT_EQ(job_of("fp8-rowwise").plan.precision.name, "bf16-pure with fp8-rowwise");
  EXPECT_EQ(job_of("fp8-rowwise").diagnostics.size(), 1U);  // slower without torch.compile
}

Job read(const std::string& text) {
  static const HardwareCatalog hardware = load_hardware_catalog();
  return load_job(parse_json(text, "test"), "test", {&hardware, ""});
}

TEST(Recipe, AloneLeavesThePresetThatThereWouldBe) {
  const std::string job = R"({"model": "llama-3.2-1b", "cluster": "1xH100", "framework": "single")";
  const Plan plain = read(job + "}").plan;
  const Plan fp8 = read(job + R"(, "precision": {"linear": "fp8-tensorwise"}})").plan;
  EXPECT_EQ(fp8.precision.params, plain.precision.params);
  EXPECT_EQ(fp8.precision.compute, plain.precision.compute);
  EXPECT_EQ(fp8.precision.name, plain.precision.name + " with fp8-tensorwise");
}

TEST(Recipe, IsNoPresetAndTheRefusalSaysWhereItIs) {
  try {
    read(R"({"model": "llama-3.2-1b", "cluster": "1xH100", "framework": "single",
             "precision": "fp8-rowwise"})");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("precision.linear (--linear)"));
  }
}

/// torch.compile fuses the casts: what is said of eager steps is not said then.
TEST(Recipe, IsNotWarnedAboutForCastsThatAreFused) {
  EXPECT_TRUE(
      job_of("fp8-rowwise", R"(, "cluster": "1xH100", "compile": true)").diagnostics.empty());
}

/// FSDP1 flattens parameters of one type alone, and divided weights in 4 bits are stored as bf16.
TEST(Recipe, OfADividedBaseLeavesItIn16BitsPackedOrNot) {
  for (const char* framework : {"fsdp1", "fsdp2"}) {
    const auto params = [&](const std::string& lora) {
      return read(R"({"model": "llama-3.2-1b", "cluster": "2xRTX4090", "framework": ")" +
                  std::string(framework) + R"(", "workload": {"method": "lora", "lora": {)" + lora +
                  "}}}")
          .plan.precision.params;
    };
    EXPECT_EQ(params(R"("quantization": "nf4")"), DType::bf16);
    EXPECT_EQ(params(R"("rank": 8)"), DType::bf16);
  }
}

TEST(Recipe, IsRefusedWhereItCannotRun) {
  const std::string h100 = R"(, "cluster": "1xH100")";
  EXPECT_THAT(refusal("fp8-rowwise", R"(, "cluster": "1xA100-80GB")"), HasSubstr("no fp8 units"));
  EXPECT_THAT(refusal("fp8-rowwise", h100, R"("micro_batch": 1, "sequence_length": 1000)"),
              HasSubstr("multiple of 16"));
  EXPECT_THAT(refusal("fp8-rowwise", h100, R"("method": "lora")"), HasSubstr("full training"));
  EXPECT_THAT(refusal("mxfp8", h100), HasSubstr("compute capability 10.0"));
  EXPECT_THAT(refusal("nvfp4", h100), HasSubstr("no fp4 units"));
  EXPECT_THAT(
      refusal("nvfp4", R"(, "cluster": "1xB200")", R"("micro_batch": 1, "sequence_length": 1040)"),
      HasSubstr("multiple of 128"));
  EXPECT_THAT(refusal("fp9", h100), HasSubstr("unknown value"));
}

/// At its own share of a peak that is twice as high.
TEST(Recipe, ProductsRunAtTheFormatsRate) {
  const GpuPeaks gpu = peaks_of(job_of("bf16").plan.cluster.gpu, DType::bf16);
  EXPECT_NEAR(gpu.fp8 / gpu.half, 2, 0.01);
  Kernel product;
  product.kind = KernelKind::product;
  product.m = product.n = product.k = 16384;
  const KernelRates rates = load_calibration().time.kernels;
  product.type = DType::bf16;
  const double wide = kernel_seconds(product, gpu, rates);
  product.type = DType::e4m3;
  EXPECT_NEAR(wide / kernel_seconds(product, gpu, rates), 2 * rates.product.fp8, 0.05);
}

/// rates/h200-tf32.json: tensor cores want operands of four bytes to lie along the sums, and those
/// of a weight's gradient do not.
TEST(Recipe, ProductsInTf32ReachLessThanThoseOf16Bits) {
  const GpuPeaks gpu = peaks_of(job_of("bf16").plan.cluster.gpu, DType::f32, true);
  Kernel product;
  product.kind = KernelKind::product;
  product.m = product.n = product.k = 8192;
  product.type = DType::f32;
  const KernelRates rates = load_calibration().time.kernels;
  const double seconds = kernel_seconds(product, gpu, rates);
  product.sums_rows = true;
  const double summed = kernel_seconds(product, gpu, rates);
  EXPECT_NEAR(seconds / summed, rates.product.tf32_summed / rates.product.tf32, 0.02);
  product.batch = 2;  // heads of attention, as fast in any order
  EXPECT_LT(kernel_seconds(product, gpu, rates), 1.9 * summed);
}

/// Measured on an H100: 14,336 rows of 4,096 bytes change their order in 410 µs.
TEST(Recipe, OperandsAreTurnedByteByByte) {
  const GpuPeaks gpu = peaks_of(job_of("bf16").plan.cluster.gpu, DType::bf16);
  Kernel turn;
  turn.kind = KernelKind::strided;
  turn.type = DType::e4m3;
  turn.elements = 14336.0 * 4096;
  turn.bytes = 2 * turn.elements;
  const double seconds = kernel_seconds(turn, gpu, load_calibration().time.kernels);
  EXPECT_NEAR(seconds, 410e-6, 20e-6);
}

// Eight experts: Transformer Engine takes no width of 8, and has nothing to do with the router.
TEST(Recipe, LeavesMegatronsRoutersInSixteenBits) {
  static const HardwareCatalog hardware = load_hardware_catalog();
  const Json text = parse_json(R"({"model": "mixtral-8x7b", "cluster": "8x8xH100",
      "framework": {"name": "megatron"}, "parallel": {"expert": 8},
      "precision": {"preset": "bf16-master", "linear": "fp8-delayed"},
      "workload": {"micro_batch": 1, "sequence_length": 1024}})",
                               "test");
  for (const Parameter& p : load_job(text, "test", {&hardware, ""}).model.parameters)
    EXPECT_FALSE(p.quantizable && p.name.ends_with("gate.weight")) << p.name;
}

}  // namespace
}  // namespace shardplan::recipe_test
