// What the engine's dry run exchanges, counted, beside the traffic that core predicts.
#include <map>
#include <memory>

#include "comm/groups.h"
#include "device/dry_run.h"
#include "engine/trainer.h"
#include "estimate/traffic.h"
#include "validator/launch/prediction.h"

namespace shardplan::validator::traffic_test {
namespace {

using namespace testing;

/// Bytes by group and collective: "tensor all-gather".
using Bytes = std::map<std::string, std::int64_t>;

/// Counts what a communicator is asked for. Single numbers, losses and norms, have no place in a
/// prediction.
class CountingCommunicator final : public Communicator {
 public:
  CountingCommunicator(Communicator& inner, std::string name, Bytes& bytes)
      : inner_(inner), name_(std::move(name)), bytes_(bytes) {}

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  void all_reduce(const Tensor& x) override {
    if (x.numel() > 1) count("all-reduce", x);
  }
  void reduce_scatter(const Tensor&, const Tensor& full) override { count("reduce-scatter", full); }
  void all_gather(const Tensor& full, const Tensor&) override { count("all-gather", full); }
  void broadcast(const Tensor&, int) override {}
  void connect_all() override {}
  void all_to_all(const Tensor&, const Tensor& from, std::int64_t) override {
    count("all-to-all", from);
  }
  void connect_neighbours() override {}
  void exchange(std::span<const Parcel> out, std::span<const Parcel>) override {
    for (const Parcel& parcel : out) count("send", parcel.tensor);
  }
  std::unique_ptr<Communicator> group(std::span<const int> members) override {
    return inner_.group(members);
  }
  void barrier() override {}
  void abort() noexcept override {}
  std::int64_t overhead_bytes() const override { return 0; }

 private:
  void count(const char* what, const Tensor& x) {
    if (size() > 1) bytes_[name_ + " " + what] += x.bytes();
  }

  Communicator& inner_;
  std::string name_;
  Bytes& bytes_;
};

class NoBatches final : public BatchSource {
 public:
  Batch next(std::int64_t, std::int64_t) override { return {}; }
};

/// Of a rank's second step: in the first one everything is gathered for the first time.
Bytes counted(const EngineJob& job, int rank, int world) {
  const auto dry = make_dry_backend(documented_cuda_workspace);
  const auto alone = make_dry_communicator(rank, world);
  const Groups groups(*dry, *alone,
                      {.tensor = job.tensor_ranks(),
                       .context = job.context_ranks(),
                       .stages = job.training.pipeline.stages,
                       .tied_ends = job.tied_ends()});
  Bytes bytes;
  CountingCommunicator data(groups.data(), "data", bytes), tensor(groups.tensor(), "tensor", bytes),
      context(groups.context(), "context", bytes), stages(groups.stages(), "pipeline", bytes);
  Arena arena(0, std::int64_t{1} << 50);
  Trainer trainer(
      {*dry, data, tensor, context, stages, groups.ends(), groups.experts(), data, arena, nullptr},
      job.make_network(
          {.tensor = tensor.rank(), .context = context.rank(), .stage = stages.rank()}),
      job.training);
  NoBatches nothing;
  trainer.step(nothing);
  bytes.clear();
  trainer.step(nothing);
  return bytes;
}

Bytes predicted(const EngineJob& job, int rank) {
  static const std::map<std::string_view, const char*> kKinds{
      {"tensor-parallel all-gather", "tensor all-gather"},
      {"tensor-parallel reduce-scatter", "tensor reduce-scatter"},
      {"norm gradient all-reduce", "tensor all-reduce"},
      {"adapter gradient all-reduce", "tensor all-reduce"},
      {"router gradient all-reduce", "tensor all-reduce"},
      {"gradient all-reduce", "data all-reduce"},
      {"gradient reduce-scatter", "data reduce-scatter"},
      {"parameter all-gather", "data all-gather"},
      {"keys and values, or their gradients, to the next rank", "context send"},
      {"activations to the next stage", "pipeline send"},
      {"gradients to the stage before", "pipeline send"}};
  const Plan& plan = job.plan();
  const RankModel share(job.job.model, plan);
  Bytes bytes;
  for (const TrafficLine& line :
       traffic_of(lower(share.model(), plan, share.run(), rank), plan.cluster)) {
    const auto kind = kKinds.find(line.what);
    if (kind == kKinds.end()) {
      ADD_FAILURE() << line.what << " is not counted";
      continue;
    }
    bytes[kind->second] += line.payload_bytes;
  }
  return bytes;
}

void expect_same_traffic(const Json& document, const std::string& what) {
  static const HardwareCatalog kHardware = load_hardware_catalog();
  const EngineJob job = load_engine_job(document, "test.json", kHardware);
  const int world = static_cast<int>(job.plan().cluster.world());
  const int stages = job.training.pipeline.stages;
  for (int stage = 0; stage < stages; ++stage) {
    const int rank = stage * (world / stages);
    EXPECT_EQ(predicted(job, rank), counted(job, rank, world)) << what << ", stage " << stage;
  }
}

/// Of which each matrix is the lowest that is adapted.
constexpr const char* kTargets[] = {R"(["q_proj", "v_proj"])", R"(["all-linear"])",
                                    R"(["o_proj", "down_proj"])", R"(["gate_proj"])",
                                    R"(["down_proj"])"};

class Traffic : public ::testing::TestWithParam<int> {};

TEST_P(Traffic, of_ranks_with_other_samples_and_rows_is_predicted_to_the_byte) {
  for (const char* model : {"gpt2", "llama-2-7b", "qwen3-0.6b"})
    for (const char* checkpointing : {"none", "selective", "full"})
      for (const std::int64_t micro_batches : {1, 3})
        for (const std::int64_t context : {1, 2})
          expect_same_traffic(
              ringed(job(model, GetParam(), "4xH200", "bf16-master", checkpointing, 2, 1000,
                         micro_batches),
                     context),
              fmt::format("{}, {} × {}, context {}", model, checkpointing, micro_batches, context));
}

TEST_P(Traffic, of_products_that_are_done_again_is_predicted_to_the_byte) {
  for (const char* policy : {"selective_op:2", "selective_op:3"})
    for (const std::int64_t tensor : {1, 2}) {
      const std::string what = fmt::format("{}, tensor {}", policy, tensor);
      expect_same_traffic(
          shared(job("llama-3.2-1b", GetParam(), "8xH200", "bf16-master", policy, 2, 1000, 3),
                 tensor),
          what);
      expect_same_traffic(
          adapted(ringed(job("qwen3-0.6b", GetParam(), "8xH200", "bf16-master", policy, 2, 1000), 2,
                         tensor),
                  kTargets[1], "none", 8),
          what + ", context 2, adapters");
    }
}

TEST_P(Traffic, of_adapters_is_predicted_to_the_byte) {
  for (const char* targets : kTargets)
    for (const char* checkpointing : {"none", "selective", "full"})
      for (const std::int64_t micro_batches : {1, 3})
        for (const char* model : {"llama-2-7b", "qwen3-0.6b"}) {
          const Json plain = adapted(job(model, GetParam(), "8xH200", "bf16-master", checkpointing,
                                         2, 1000, micro_batches),
                                     targets, "none", 8);
          const std::string what =
              fmt::format("{}, {}, {} × {}", model, targets, checkpointing, micro_batches);
          for (const auto& [context, tensor] : {std::pair{1, 1}, {2, 1}, {1, 2}, {2, 4}})
            expect_same_traffic(ringed(plain, context, tensor),
                                fmt::format("{}, context {}, tensor {}", what, context, tensor));
          expect_same_traffic(ringed(adapted(plain, targets, "nf4_double", 8), 2),
                              what + ", 4 bits");
        }
}

TEST_P(Traffic, of_adapters_of_experts_is_predicted_to_the_byte) {
  for (const char* targets : {"[]", R"(["all-linear"])"})
    for (const char* parameters :
         {R"(["gate_up_proj"])", R"(["down_proj"])", R"(["gate_up_proj", "down_proj"])"})
      for (const char* checkpointing : {"none", "full"})
        for (const char* base : {"none", "nf4_double"}) {
          const Json plain = adapted_experts(adapted(job(mixtral(8, 2), GetParam(), "4xH200",
                                                         "bf16-master", checkpointing, 2, 80, 3),
                                                     targets, base, 8),
                                             parameters);
          const std::string what =
              fmt::format("{}, {}, {}, {}", targets, parameters, checkpointing, base);
          expect_same_traffic(plain, what);
          if (std::string(base) != "none") expect_same_traffic(quantized_experts(plain), what);
        }
}

TEST_P(Traffic, of_scales_of_fp8_is_predicted_to_the_byte) {
  for (const char* linear : {"fp8-tensorwise", "fp8-rowwise"})
    for (const char* checkpointing : {"none", "selective", "full"})
      for (const std::int64_t tensor : {1, 2, 4}) {
        const Json plain = shared(narrowed(job("llama-3.2-1b", GetParam(), "8xH200", "bf16-master",
                                               checkpointing, 2, 1008, 3),
                                           linear),
                                  tensor);
        const auto what = fmt::format("{}, {}, tensor {}", linear, checkpointing, tensor);
        expect_same_traffic(plain, what);
        for (const char* targets : kTargets)
          expect_same_traffic(adapted(plain, targets, "none", 8), what + targets);
      }
}

INSTANTIATE_TEST_SUITE_P(Zero, Traffic, ::testing::Values(0, 1, 2, 3));

class TrafficOfStages : public ::testing::TestWithParam<int> {};

TEST_P(TrafficOfStages, is_predicted_to_the_byte) {
  for (const char* targets : kTargets)
    for (const char* checkpointing : {"none", "full"})
      for (const std::int64_t stages : {2, 4}) {
        const Json plain = adapted(
            job("qwen3-0.6b", GetParam(), "8xH200", "bf16-master", checkpointing, 2, 1000, 8),
            targets, "none", 8);
        const std::string what = fmt::format("{}, {}, {}", targets, checkpointing, stages);
        expect_same_traffic(staged(plain, stages, "1f1b"), what);
        expect_same_traffic(staged(plain, 2, "interleaved", 2, 2), what + ", tensor 2");
      }
}

INSTANTIATE_TEST_SUITE_P(Zero, TrafficOfStages, ::testing::Values(0, 1));

}  // namespace
}  // namespace shardplan::validator::traffic_test
