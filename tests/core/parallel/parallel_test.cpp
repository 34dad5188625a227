// One rank's share of a network: its parameters to the element, what the papers say of its
// activations, and the bytes that its collectives carry.
#include <gtest/gtest.h>

#include <map>

#include "load/model.h"
#include "lowering/lower.h"
#include "parallel/groups.h"
#include "parallel/shard.h"
#include "support/plan_testing.h"
#include "support/program_testing.h"
#include "timing/collective_time.h"

namespace shardplan {
namespace {

Model named(std::string_view name, const BuildOptions& options = {}) {
  return load_model(Json(std::string(name)), {}, options);
}

Plan divided(FrameworkKind framework, std::int64_t tensor,
             std::string_view precision = "bf16-pure") {
  Plan plan = plan_of(framework, precision, tensor);
  plan.parallel.tensor = tensor;
  return plan;
}

/// Elements that are not alike on all ranks, and those that are.
struct Layout {
  std::int64_t divided = 0, whole = 0;
};
Layout layout_of(const Model& whole, const Model& part) {
  Layout l;
  for (const ParameterGroup& g : whole.groups)
    for (std::int32_t i = g.first; i < g.first + g.count; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const std::int64_t mine = part.parameters[at].numel * g.repeat;
      (mine == whole.parameters[at].numel * g.repeat ? l.whole : l.divided) += mine;
    }
  return l;
}

/// What the second segment, a layer, exchanges in both passes.
std::vector<TapeExchange> exchanges_of_layer(const Model& part, const Plan& plan) {
  const ModelRun run = run_segments(part, plan);
  return run.segments[1].forward.exchanges;
}

/// Payload bytes a step by the traffic's name.
std::map<std::string, std::int64_t> traffic_of(const Program& program) {
  std::map<std::string, std::int64_t> bytes;
  for_each_event(program, [&](const Event& e, std::int64_t times) {
    if (e.kind == Event::Kind::collective) bytes[std::string(e.what)] += e.bytes * times;
  });
  return bytes;
}

Program program_of(const Model& part, const Plan& plan) {
  return lower(part, plan, run_segments(part, plan), 0);
}

TEST(TensorShare, MegatronDividesLlama2of70bOverEightRanks) {
  const Model whole = named("llama-2-70b");
  const Model part = shard(whole, divided(FrameworkKind::megatron, 8));
  // Norms are on every rank; 32,000 rows are 32,768 with 128 for each of 8 ranks.
  const std::int64_t h = 8192, f = 28672, kv = 8 * 128, layers = 80, padded = 32768;
  const std::int64_t linears = 2 * h * h + 2 * h * kv + 3 * h * f;
  const std::int64_t norms = (2 * layers + 1) * h;
  EXPECT_EQ(part.parameter_count(), (layers * linears + 2 * padded * h) / 8 + norms);
  EXPECT_EQ(whole.parameter_count(), layers * linears + 2 * 32000 * h + norms);
}

TEST(TensorShare, TheRanksSharesAreTheWholeModel) {
  for (const auto* name : {"llama-2-70b", "qwen3-32b", "mistral-7b", "pythia-12b"}) {
    const Model whole = named(name);
    for (const std::int64_t ranks : {2, 4, 8}) {
      const Model part = shard(whole, divided(FrameworkKind::single, ranks));
      const Layout l = layout_of(whole, part);
      EXPECT_EQ(ranks * l.divided + l.whole, whole.parameter_count()) << name << " " << ranks;
    }
  }
}

TEST(TensorShare, TransformersReplicatesEmbeddingsAndNorms) {
  const Model whole = named("llama-2-7b");
  const Layout l = layout_of(whole, shard(whole, divided(FrameworkKind::single, 2)));
  EXPECT_EQ(l.whole, 32000 * 4096 + (2 * 32 + 1) * 4096);  // the head is divided
}

TEST(TensorShare, MegatronsGpt3of175bHasAnEighthOfEveryMatrix) {
  const Model whole = named("gpt3-175b");
  const Model part = shard(whole, divided(FrameworkKind::megatron, 8));
  const std::int64_t h = 12288, layers = 96, padded = 51200;
  const std::int64_t weights = 12 * h * h, column_bias = 3 * h + 4 * h;
  const std::int64_t whole_in_layer = 2 * h + 4 * h;  // biases of the row cuts, two norms
  EXPECT_EQ(part.parameter_count(), (layers * (weights + column_bias) + padded * h) / 8 +
                                        layers * whole_in_layer + 2048 * h + 2 * h);
}

TEST(TensorShare, RefusesHeadsThatTransformersCannotDivide) {
  const Model whole = named("qwen2.5-0.5b");  // two key-value heads
  EXPECT_THROW(shard(whole, divided(FrameworkKind::single, 7)), InputError);
  EXPECT_THROW(shard(named("gpt2"), divided(FrameworkKind::single, 2)), InputError);
}

TEST(TensorShare, DeepSpeedRejectsPlansWithExperts) {
  EXPECT_THROW(shard(named("mixtral-8x7b"), divided(FrameworkKind::deepspeed, 2)), InputError);
}

TEST(TensorShare, RefusesLora) {
  BuildOptions options;
  options.lora = Lora{.rank = 8, .targets = {"q_proj"}};
  EXPECT_THROW(shard(named("llama-2-7b", options), divided(FrameworkKind::single, 2)), InputError);
}

TEST(TensorShare, ZeroDividesARanksShareOverItsReplicas) {
  const Model whole = named("llama-2-7b");
  Plan plan = zero_plan(1, "bf16-master", 8);
  plan.parallel.tensor = 2;
  const std::int64_t share = shard(whole, plan).parameter_count();
  // 2 bytes of parameters, 2 of gradients, 12 of states over the four data-parallel ranks.
  EXPECT_EQ(plan.replicas(), 4);
  EXPECT_EQ(model_states(whole, plan), 4 * share + 12 * share / 4);
}

TEST(TensorShare, Fsdp2DividesARanksShareOverItsReplicas) {
  const Model whole = named("llama-2-7b");
  Plan plan = plan_of(FrameworkKind::fsdp2, "bf16-autocast", 8);
  plan.parallel.tensor = 2;
  const std::int64_t share = shard(whole, plan).parameter_count();
  EXPECT_EQ(model_states(whole, plan), 16 * share / 4);
}

TEST(ExpertShare, TransformersDividesExpertsAndNothingElse) {
  const Model whole = named("mixtral-8x7b");
  Plan plan = divided(FrameworkKind::single, 8);
  plan.parallel.expert = 8;
  const std::int64_t experts = std::int64_t{32} * 8 * 3 * 4096 * 14336;
  EXPECT_EQ(shard(whole, plan).parameter_count(), whole.parameter_count() - experts / 8 * 7);
}

TEST(ExpertShare, MegatronSendsEveryTokensRowsThereAndBack) {
  const Model whole = named("mixtral-8x7b");
  Plan plan = plan_of(FrameworkKind::megatron, "bf16-pure", 8);
  plan.parallel.expert = 8;
  const Model part = shard(whole, plan);
  const std::int64_t experts = std::int64_t{32} * 8 * 3 * 4096 * 14336;
  EXPECT_EQ(part.parameter_count(), whole.parameter_count() - experts / 8 * 7);
  const std::int64_t rows = std::int64_t{128} * 2 * 4096 * 2;  // two experts a token, in bf16
  const auto exchanges = exchanges_of_layer(part, plan);
  ASSERT_EQ(exchanges.size(), 4u);
  for (const TapeExchange& e : exchanges) {
    EXPECT_EQ(e.kind, Exchange::all_to_all);
    EXPECT_EQ(e.bytes, rows);
  }
  plan.parallel.expert_imbalance = 1.5;
  EXPECT_EQ(exchanges_of_layer(shard(whole, plan), plan).front().bytes, rows * 3 / 2);
}

class Volumes : public ::testing::Test {
 protected:
  static constexpr std::int64_t kTokens = 2 * 128, kHidden = 4096, kLayers = 32;
  static constexpr std::int64_t kState = kTokens * kHidden * 2;  // b·s·h in bf16
  static Plan plan(FrameworkKind framework, std::int64_t ranks) {
    Plan p = divided(framework, ranks);
    p.workload.micro_batch = 2;
    return p;
  }
};

TEST_F(Volumes, MegatronReducesFourStatesALayer) {
  const Model whole = named("llama-2-7b");
  const Plan p = plan(FrameworkKind::megatron, 4);
  const Model part = shard(whole, p);
  std::int64_t layer = 0;
  for (const TapeExchange& e : exchanges_of_layer(part, p)) {
    EXPECT_EQ(e.kind, Exchange::all_reduce);
    layer += e.bytes;
  }
  EXPECT_EQ(layer, 4 * kState);
}

TEST_F(Volumes, SequenceParallelismSendsWhatTheAllReducesDid) {
  const Model whole = named("llama-2-7b");
  Plan p = plan(FrameworkKind::megatron, 4);
  const auto sent = [&](const Plan& with) {
    const Model part = shard(whole, with);
    std::int64_t bytes = 0;
    for (const TapeExchange& e : exchanges_of_layer(part, with))
      bytes += bytes_sent(e.kind == Exchange::all_reduce   ? Collective::all_reduce
                          : e.kind == Exchange::all_gather ? Collective::all_gather
                                                           : Collective::reduce_scatter,
                          e.bytes, 4);
    return bytes;
  };
  const std::int64_t without = sent(p);
  p.parallel.sequence_parallel = true;
  // Beside them, the inputs of both column cuts are gathered again for the weights' gradients.
  EXPECT_EQ(sent(p), without + 2 * kState * 3 / 4);
}

TEST_F(Volumes, UlyssesSendsFourTimesItsPartOfTheState) {
  const Model whole = named("llama-2-7b");
  Plan p = plan_of(FrameworkKind::deepspeed, "bf16-pure", 4);
  p.workload.micro_batch = 2;
  p.parallel.sequence = 4;
  const Model part = shard(whole, p);
  std::int64_t forward = 0;
  for (const TapeExchange& e : exchanges_of_layer(part, p)) forward += e.bytes;
  EXPECT_EQ(forward / 2, 4 * kState / 4);  // as much again backward
}

TEST_F(Volumes, ARingSendsKeysAndValuesToEveryOtherRank) {
  const Model whole = named("llama-2-7b");
  Plan p = plan_of(FrameworkKind::megatron, "bf16-pure", 4);
  p.workload.micro_batch = 2;
  p.parallel.context = 4;
  const Model part = shard(whole, p);
  std::vector<std::int64_t> bytes;
  for (const TapeExchange& e : exchanges_of_layer(part, p))
    bytes.push_back(bytes_sent(Collective::ring, e.bytes, 4));
  ASSERT_EQ(bytes.size(), 2u);
  EXPECT_EQ(bytes[0], 3 * 2 * kState / 4);
  EXPECT_EQ(bytes[1], 3 * 4 * kState / 4);  // with their gradients
}

TEST(GroupShapes, TensorRanksStayInANodeAndDataRanksDoNot) {
  Plan plan = plan_of(FrameworkKind::megatron, "bf16-pure", 64);
  plan.parallel.tensor = 8;
  plan.parallel.pipeline = 2;
  const auto shapes = group_shapes(plan);
  const auto shape = [&](Group g) { return shapes[static_cast<std::size_t>(g)]; };
  EXPECT_EQ(shape(Group::tensor).nodes, 1);
  EXPECT_EQ(shape(Group::data).ranks, 4);
  EXPECT_EQ(shape(Group::data).nodes, 4);
  EXPECT_EQ(shape(Group::pipeline).nodes, 2);
}

TEST(ShardedPrograms, FreeWhatTheyAllocate) {
  for (const auto framework :
       {FrameworkKind::single, FrameworkKind::fsdp2, FrameworkKind::deepspeed})
    for (const int stage : {0, 1, 2, 3}) {
      Plan plan = divided(framework, 2,
                          framework == FrameworkKind::deepspeed ? "bf16-master" : "bf16-pure");
      plan.framework.deepspeed.zero.stage = stage;
      const Model part = shard(named("llama-3.2-1b"), plan);
      const Program program = program_of(part, plan);
      std::vector<Event> events;
      unroll(program, 0, program.events.size(), events);
      std::int64_t live = 0;
      for (const Event& e : events) {
        if (e.kind == Event::Kind::alloc) live += e.bytes;
        if (e.kind == Event::Kind::free) live -= e.bytes;
      }
      EXPECT_EQ(live, 0) << "stage " << stage;
      EXPECT_GT(traffic_of(program).at("tensor-parallel all-reduce"), 0);
    }
}

}  // namespace
}  // namespace shardplan
