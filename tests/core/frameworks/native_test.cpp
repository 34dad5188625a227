// The native engine's states against the closed forms of the ZeRO paper.
#include <gtest/gtest.h>

#include "estimate/ranks.h"
#include "frameworks/native/layout.h"
#include "frameworks/native/stages.h"
#include "lowering/lower.h"
#include "lowering/rank_model.h"
#include "parallel/sharding.h"
#include "simulator/memory.h"
#include "support/plan_testing.h"

namespace shardplan {
namespace {

// Every shard on up to 4 ranks is a multiple of 512 bytes and the vocabulary one of 128, so nothing
// is padded.
constexpr std::string_view kLlama = R"({"model_type": "llama", "hidden_size": 1024,
  "intermediate_size": 1024, "num_hidden_layers": 6, "num_attention_heads": 8, "vocab_size": 1280})";

Plan native_plan(std::int64_t stage, std::string_view precision, std::int64_t ranks) {
  Plan plan = plan_of(FrameworkKind::native, precision, ranks);
  plan.framework.native.zero_stage = stage;
  return plan;
}

TEST(NativeLowering, keeps_the_states_of_the_closed_forms) {
  const Model model = model_of(kLlama);
  const std::int64_t psi = model.parameter_count();
  for (const std::int64_t n : {1, 2, 4}) {
    const auto states = [&](std::int64_t stage) {
      return model_states(model, native_plan(stage, "bf16-master", n));
    };
    EXPECT_EQ(states(0), 16 * psi);
    EXPECT_EQ(states(1), 4 * psi + 12 * psi / n);
    EXPECT_EQ(states(2), 2 * psi + 14 * psi / n);
    EXPECT_EQ(states(3), 16 * psi / n);
    EXPECT_EQ(model_states(model, native_plan(3, "bf16-pure", n)), 8 * psi / n);
    EXPECT_EQ(model_states(model, native_plan(0, "fp32", n)), 16 * psi);
  }
}

TEST(NativeLowering, needs_room_for_the_units_that_are_gathered_and_reduced) {
  const Model model = model_of(kLlama);
  const NativeLayout layout = native_layout(model, Parallel{});
  // Two blocks, and the embedding or the larger head.
  const std::int64_t slots = 2 * (2 * layout.blocks[0].elements + layout.head.elements);
  const Estimate e = estimate(model, native_plan(3, "bf16-master", 4), Calibration{});
  EXPECT_EQ(resident(e, Category::gathered_parameters), slots);
  EXPECT_EQ(resident(e, Category::communication_buffers), slots);
  const Estimate two = estimate(model, native_plan(2, "bf16-master", 4), Calibration{});
  EXPECT_EQ(resident(two, Category::gathered_parameters), 0);
}

TEST(NativeLowering, sends_what_each_stage_sends) {
  const Model model = model_of(kLlama);
  const std::int64_t bytes = 2 * model.parameter_count();
  const auto payload = [&](std::int64_t stage, std::string_view what) {
    std::int64_t sum = 0;
    for (const TrafficLine& line :
         estimate(model, native_plan(stage, "bf16-master", 4), Calibration{}).traffic)
      if (line.what == what) sum += line.payload_bytes;
    return sum;
  };
  EXPECT_EQ(payload(0, "gradient all-reduce"), bytes);
  EXPECT_EQ(payload(1, "gradient reduce-scatter"), bytes);
  EXPECT_EQ(payload(1, "parameter all-gather"), bytes);
  EXPECT_EQ(payload(3, "gradient reduce-scatter"), bytes);
  // Once forward; backward without embedding, head and the two blocks that are still there.
  const NativeLayout layout = native_layout(model, Parallel{});
  EXPECT_EQ(payload(3, "parameter all-gather"), bytes + 2 * 4 * layout.blocks[0].elements);
}

/// Two sums of 2 bytes an element are read and one is written, for each micro-batch but the first;
/// before stage 2 the GPU adds them.
TEST(NativeLowering, has_the_host_add_the_gradients_of_later_micro_batches) {
  const Model model = model_of(kLlama);
  const auto moved_by_host = [&](std::int64_t stage, std::int64_t micro_batches) {
    Plan plan = native_plan(stage, "bf16-master", 2);
    plan.framework.native.offload_optimizer = OffloadDevice::cpu;
    plan.workload.gradient_accumulation = micro_batches;
    const RankModel share(model, plan);
    std::int64_t bytes = 0;
    for_each_event(lower(share.model(), plan, share.run(), 0),
                   [&](const Event& e, std::int64_t times) {
                     if (e.kind == Event::Kind::host_optimizer) bytes += e.bytes * times;
                   });
    return bytes;
  };
  const std::int64_t added = 6 * model.parameter_count() / 2;  // by a rank
  for (const std::int64_t stage : {2, 3}) {
    EXPECT_EQ(moved_by_host(stage, 2) - moved_by_host(stage, 1), added) << stage;
    EXPECT_EQ(moved_by_host(stage, 5) - moved_by_host(stage, 1), 4 * added) << stage;
  }
  EXPECT_EQ(moved_by_host(1, 5), moved_by_host(1, 1));
}

/// A rank's half of what is read and written in a step: 2 bytes an element, in whole blocks of
/// 4096.
TEST(NativeLowering, reads_parameters_from_nvme_for_each_pass_and_writes_what_is_updated) {
  const Model model = model_of(kLlama);
  const NativeLayout layout = native_layout(model, Parallel{});
  const auto in_file = [](const NativeUnit& u) { return round_up(u.elements, std::int64_t{4096}); };
  const std::int64_t block = in_file(layout.blocks[0]),
                     ends = in_file(layout.embedding) + in_file(layout.head);
  const auto moved = [&](std::string_view precision, std::string_view what) {
    Plan plan = native_plan(3, precision, 2);
    plan.framework.native.offload_optimizer = OffloadDevice::cpu;
    plan.framework.native.offload_param = OffloadDevice::nvme;
    std::int64_t sum = 0;
    for (const TrafficLine& line : estimate(model, plan, Calibration{}).traffic)
      if (line.link == LinkKind::nvme && line.what == what) sum += line.bytes_per_step;
    return sum;
  };
  // Backward all but the two blocks that are still there; forward what the update starts from.
  EXPECT_EQ(moved("bf16-master", "parameter shards from NVMe"), 4 * block);
  EXPECT_EQ(moved("bf16-pure", "parameter shards from NVMe"), 8 * block + ends);
  for (const auto* precision : {"bf16-master", "bf16-pure"})
    EXPECT_EQ(moved(precision, "parameter shards to NVMe"), 6 * block + ends);
}

TEST(NativeLowering, leaves_cufile_room_for_its_buffers_on_the_gpu_but_does_not_expect_them) {
  const Model model = model_of(kLlama);
  Plan plan = native_plan(3, "bf16-master", 2);
  plan.framework.native.offload_optimizer = OffloadDevice::cpu;
  plan.framework.native.offload_param = OffloadDevice::nvme;
  const Estimate without = estimate(model, plan, Calibration{});
  plan.framework.native.use_gds = true;
  const Estimate with = estimate(model, plan, Calibration{});
  EXPECT_EQ(with.device.point, without.device.point);
  EXPECT_EQ(with.device.upper, without.device.upper + (std::int64_t{128} << 20));
}

Plan staged(Plan plan, std::int64_t stages, PipelineSchedule order, std::int64_t chunks) {
  plan.parallel.pipeline = stages;
  plan.parallel.schedule = order;
  plan.parallel.virtual_pipeline = chunks;
  plan.workload.gradient_accumulation = 6;
  return plan;
}

/// What the passes of a step keep on a stage.
std::int64_t kept(const Model& model, const Plan& plan, std::int64_t stage) {
  const RankModel share(model, plan);
  const auto memory = simulate_memory(lower(share.model(), plan, share.run(),
                                            stage * plan.cluster.world() / plan.parallel.pipeline));
  return memory.of(Phase::forward).end - memory.of(Phase::step).end;
}

TEST(NativePipelines, keep_as_many_micro_batches_as_the_order_lets_on_their_way) {
  const Model model = model_of(kLlama);
  Plan plan = native_plan(0, "bf16-master", 3);
  plan.checkpointing = Checkpointing::full;  // a block keeps its input alone
  const std::int64_t stream = plan.workload.micro_batch * plan.workload.sequence_length * 1024 * 2;
  const auto slots = [&](PipelineSchedule order, std::int64_t chunks, std::int64_t stage) {
    // The inputs of a chunk's blocks, and the branch.
    return kept(model, staged(plan, 3, order, chunks), stage) / ((6 / (3 * chunks) + 1) * stream);
  };
  EXPECT_EQ(slots(PipelineSchedule::gpipe, 1, 0), 6);
  EXPECT_EQ(slots(PipelineSchedule::gpipe, 1, 1), 6);
  EXPECT_EQ(slots(PipelineSchedule::one_f_one_b, 1, 0), 3);
  EXPECT_EQ(slots(PipelineSchedule::one_f_one_b, 1, 1), 2);
  EXPECT_EQ(slots(PipelineSchedule::interleaved, 2, 0), 2 * 2 + 3 + 1);
  EXPECT_EQ(slots(PipelineSchedule::interleaved, 2, 1), 2 * 1 + 3 + 1);
}

TEST(NativePipelines, have_a_tied_table_at_both_ends_and_sum_its_gradient) {
  Model model = model_of(R"({"model_type": "gpt2", "n_embd": 128, "n_layer": 4, "n_head": 4,
    "n_positions": 64, "vocab_size": 256})");
  const Plan plan = staged(native_plan(0, "fp32", 2), 2, PipelineSchedule::one_f_one_b, 1);
  const auto states = [&](std::int64_t rank) {
    const RankModel share(model, plan);
    std::int64_t sum = 0;
    for (const Event& e : lower(share.model(), plan, share.run(), rank).resident)
      if (e.category == Category::parameters) sum += e.bytes * e.count;
    return sum;
  };
  const std::int64_t table = 4 * 256 * 128, positions = 4 * 64 * 128, norm = 4 * 2 * 128;
  EXPECT_EQ(states(0) - positions, states(1) - norm);
  EXPECT_EQ(states(0) + states(1), 4 * model.parameter_count() + table);
  std::int64_t summed = 0;
  for (const TrafficLine& line : estimate(model, plan, Calibration{}).traffic)
    if (line.what == "tied embedding's gradient") summed += line.payload_bytes;
  EXPECT_EQ(summed, table);
}

TEST(NativePipelines, send_each_micro_batch_on_and_its_gradient_back) {
  const Model model = model_of(kLlama);
  const Plan plan = staged(native_plan(1, "bf16-master", 6), 3, PipelineSchedule::one_f_one_b, 1);
  const Estimate e = estimate(model, plan, Calibration{});
  const std::int64_t message = plan.workload.micro_batch * plan.workload.sequence_length * 1024 * 2;
  std::int64_t sent = 0;  // of the stage that needs most memory, which is an end
  for (const TrafficLine& line : e.traffic)
    if (line.what == "activations to the next stage" ||
        line.what == "gradients to the stage before")
      sent += line.payload_bytes;
  EXPECT_EQ(sent, 6 * message);
}

/// Of 6 micro-batches: two turns of the others. The last stage has the head, the others do not.
TEST(NativePipelines, wait_for_the_turns_of_the_other_stages) {
  const Model model = model_of(kLlama);
  const Plan plan = staged(native_plan(1, "bf16-master", 6), 3, PipelineSchedule::one_f_one_b, 1);
  const RankModel share(model, plan);
  const auto share_of = [&](std::int64_t rank) {
    return lower(share.model(), plan, share.run(), rank).bubble_share;
  };
  const double first = share_of(0), last = share_of(4);
  EXPECT_LT(last, 2.0 / 6);
  EXPECT_GT(first, 2.0 / 6);
  // With h of the head's work beside a stage's blocks: 2 / (1 + h) and 2 + h turns.
  const double head = 2.0 / 6 / last - 1;
  EXPECT_NEAR(first, (2 + head) / 6, 1e-12);
}

TEST(NativePipelines, are_made_ready_once_a_step) {
  const Model model = model_of(kLlama);
  Plan plan = staged(native_plan(1, "bf16-master", 6), 3, PipelineSchedule::one_f_one_b, 1);
  Calibration calibration;
  const auto step = [&](double seconds) {
    calibration.time.host.phase_seconds = seconds;
    return estimate(model, plan, calibration).time.step_seconds;
  };
  EXPECT_LT(step(1), 3 * (1 + step(0)));  // once and its share of the wait, not 12 times
}

constexpr std::string_view kMixtral = R"({"model_type": "mixtral", "hidden_size": 1024,
  "intermediate_size": 256, "num_hidden_layers": 4, "num_attention_heads": 8,
  "num_key_value_heads": 8, "num_local_experts": 8, "num_experts_per_tok": 2, "vocab_size": 1280})";

TEST(NativeLowering, divides_experts_over_their_ranks_and_all_else_over_all) {
  const Model model = model_of(kMixtral);
  const std::int64_t experts = std::int64_t{4} * 8 * 3 * 1024 * 256;
  const std::int64_t others = model.parameter_count() - experts;
  for (const std::int64_t ranks : {1, 2, 4}) {
    const auto states = [&](std::int64_t stage) {
      Plan plan = native_plan(stage, "bf16-master", 4);
      plan.parallel.expert = ranks;
      return model_states(model, plan);
    };
    const std::int64_t here = others + experts / ranks;
    EXPECT_EQ(states(0), 16 * here) << ranks;
    // Copies of an expert are fewer than ranks, and divide its states.
    EXPECT_EQ(states(1), 4 * here + 12 * (others + experts) / 4) << ranks;
    EXPECT_EQ(states(3), 16 * (others + experts) / 4) << ranks;
  }
}

/// A stage has its layers' experts, and no other.
TEST(NativeLowering, divides_experts_over_stages_too) {
  const Model model = model_of(kMixtral);
  Plan plan = native_plan(0, "bf16-master", 4);
  plan.parallel.pipeline = plan.parallel.expert = 2;
  const RankModel share(model, plan);
  const NativeLayout whole = native_layout(share.model(), plan.parallel);
  const NativeLayout part = layout_of_stage(whole, native_stage(plan, 2));
  EXPECT_EQ(part.experts.count, 2);
  EXPECT_EQ(part.experts.elements, whole.experts.elements);
}

/// Of a rank among `ranks` that divide the experts.
NativeLayout adapted_layout(Lora lora, std::int64_t ranks) {
  lora.rank = 16;
  lora.targets = {"q_proj"};
  Plan plan = native_plan(1, "bf16-master", 4);
  plan.parallel.expert = ranks;
  plan.workload.lora = lora;
  const Model model = model_of(kMixtral, {.lora = lora});
  return native_layout(RankModel(model, plan).model(), plan.parallel);
}

TEST(NativeLowering, divides_adapters_of_experts_as_it_does_experts) {
  for (const std::int64_t ranks : {1, 2, 4}) {
    const auto elements = [&](std::vector<std::string> parameters) {
      const NativeLayout layout = adapted_layout({.parameters = std::move(parameters)}, ranks);
      EXPECT_EQ(layout.block.per_token, 2);
      EXPECT_EQ(layout.block.rank, 16);
      EXPECT_EQ(layout.adapters.elements, 2 * 16 * 1024);
      return layout.expert_adapters.elements;
    };
    const std::int64_t up = 8 * 16 * (2 * 256 + 1024) / ranks, down = 8 * 16 * (1024 + 256) / ranks;
    EXPECT_EQ(elements({"experts.gate_up_proj", "experts.down_proj"}), up + down);
    EXPECT_EQ(elements({"mlp.experts.gate_up_proj"}), up);
    EXPECT_EQ(elements({"down_proj"}), down);
    EXPECT_EQ(elements({"up_proj"}), 0) << "peft compares whole names between dots";
  }
}

TEST(NativeLowering, stores_experts_in_4_bits_where_they_are_to_be) {
  for (const std::int64_t ranks : {1, 4}) {
    const auto bytes = [&](Quantization base) {
      const NativeLayout layout = adapted_layout({.base = base, .base_of_experts = true}, ranks);
      EXPECT_TRUE(layout.experts.quantized && layout.experts.frozen);
      EXPECT_EQ(layout.block.of(NativeLinear::up).elements, 2 * 256 * 1024);
      return layout.experts.elements;
    };
    const std::int64_t each = 3 * 256 * 1024;  // elements of an expert
    EXPECT_EQ(bytes(Quantization::nf4), 8 / ranks * (each / 2 + 4 * each / 64));
    // A byte for each scale; of 8192 and 4096 of them 32 and 16 scales, and two means, at 64 bytes.
    EXPECT_EQ(bytes(Quantization::nf4_double),
              8 / ranks * (each / 2 + each / 64 + 3 * 64 + 2 * 64));
    EXPECT_FALSE(adapted_layout({.base = Quantization::nf4}, ranks).experts.quantized);
  }
}

TEST(NativeLowering, sends_rows_of_experts_there_and_back_in_both_passes) {
  const Model model = model_of(kMixtral);
  Plan plan = native_plan(1, "bf16-master", 4);
  plan.parallel.expert = 4;
  plan.workload.micro_batch = 2;
  plan.workload.sequence_length = 64;
  const auto sent = [&] {
    std::int64_t sum = 0;
    for (const TrafficLine& line : estimate(model, plan, Calibration{}).traffic)
      if (line.what == "rows of experts") sum += line.payload_bytes;
    return sum;
  };
  // Every row may go to one expert: room for all of them in each.
  EXPECT_EQ(sent(), std::int64_t{4} * 4 * 8 * 128 * 1024 * 2);
  plan.framework.native.capacity_factor = 1.5;  // 128 · 2 / 8 · 1.5
  EXPECT_EQ(sent(), std::int64_t{4} * 4 * 8 * 48 * 1024 * 2);
}

/// Each expert's rows go, and come, in a message of their own.
TEST(NativeLowering, has_the_host_give_a_message_for_each_expert) {
  const Model model = model_of(kMixtral);
  Plan plan = native_plan(1, "bf16-master", 4);
  plan.parallel.expert = 4;
  std::int64_t exchanges = 0;
  for_each_event(worst_program(model, plan), [&](const Event& e, std::int64_t times) {
    if (e.what != "rows of experts") return;
    EXPECT_EQ(e.messages, 2 * 8);
    exchanges += times;
  });
  EXPECT_EQ(exchanges, 4 * 4);
}

// Tokens are no leading dimension of an expert's products, or padded (fp8): no count is slow.
TEST(NativeLowering, multiplies_rows_of_experts_at_the_rate_of_whole_tiles) {
  const Model model = model_of(kMixtral);
  for (const LinearRecipe recipe : {LinearRecipe::computed, LinearRecipe::fp8_tensorwise}) {
    Plan plan = native_plan(0, "bf16-master", 1);
    plan.precision.linear = recipe;
    plan.workload.micro_batch = 1;
    plan.workload.sequence_length = 516;  // 129 rows an expert
    const RankModel share(model, plan);
    const Program program = lower(share.model(), plan, share.run(), 0);
    std::int64_t products = 0;
    for_each_event(program, [&](const Event& e, std::int64_t times) {
      if (e.kind != Event::Kind::compute) return;
      for_each_kernel(program, e, [&](const Kernel& k) {
        if (k.kind != KernelKind::product || k.calls != 8) return;
        products += times;
        for (const std::int64_t side : {k.m, k.n, k.k}) EXPECT_EQ(side % 16, 0) << side;
      });
    });
    EXPECT_EQ(products, 4 * (2 + 4));
  }
}

TEST(NativeLowering, starts_nothing_for_experts_without_rows) {
  const Model model = model_of(kMixtral);
  struct Work {
    std::int64_t calls = 0;
    std::int64_t rows = 0;  ///< of one product
  };
  const auto work_of = [&](double idle) {
    Plan plan = native_plan(0, "bf16-master", 1);
    plan.workload.micro_batch = 1;
    plan.workload.sequence_length = 512;
    plan.framework.native.idle_experts = idle;
    const RankModel share(model, plan);
    const Program program = lower(share.model(), plan, share.run(), 0);
    Work work;
    for_each_event(program, [&](const Event& e, std::int64_t times) {
      if (e.kind != Event::Kind::compute) return;
      for_each_kernel(program, e, [&](const Kernel& k) {
        if (k.kind != KernelKind::product || k.calls == 1) return;
        work.calls += times * k.calls;
        work.rows = std::min({k.m, k.n, k.k});
      });
    });
    return work;
  };
  // 4 layers, 2 products forward and 4 backward; 512 tokens go to 2 of 8 each.
  EXPECT_EQ(work_of(0).calls, 4 * 6 * 8);
  EXPECT_EQ(work_of(0).rows, 128);
  EXPECT_EQ(work_of(3.6).calls, 4 * 6 * 4);
  EXPECT_EQ(work_of(3.6).rows, 256);
  const auto refused = [&](double idle, double capacity) {
    Plan plan = native_plan(0, "bf16-master", 1);
    plan.framework.native.idle_experts = idle;
    plan.framework.native.capacity_factor = capacity;
    return sharding_problem(model, plan).has_value();
  };
  EXPECT_FALSE(refused(7, 0));
  EXPECT_TRUE(refused(8, 0));
  EXPECT_TRUE(refused(1, 1.25));
}

TEST(NativeLowering, refuses_whole_layers_of_experts_beside_shared_layers_in_a_pipeline_alone) {
  const Model model = model_of(kMixtral);
  const auto key_of = [&](auto&& change, const Model& of) {
    Plan plan = native_plan(1, "bf16-master", 4);
    change(plan);
    const auto problem = sharding_problem(of, plan);
    return problem ? problem->key : std::string();
  };
  EXPECT_EQ(key_of([](Plan& p) { p.parallel.expert = 4; }, model), "");
  EXPECT_EQ(key_of([](Plan& p) { p.parallel.tensor = 2; }, model), "");
  EXPECT_EQ(key_of([](Plan& p) { p.parallel.tensor = p.parallel.pipeline = 2; }, model),
            "parallel.expert");
  EXPECT_EQ(key_of([](Plan& p) { p.parallel.tensor = p.parallel.expert = 2; }, model), "");
  EXPECT_EQ(key_of([](Plan& p) { p.parallel.pipeline = p.parallel.expert = 2; }, model), "");
  EXPECT_EQ(key_of([](Plan& p) { p.parallel.context = p.parallel.expert = 4; }, model), "");
  EXPECT_EQ(key_of([](Plan& p) { p.framework.native.capacity_factor = 1; }, model_of(kLlama)),
            "framework.capacity_factor");
}

TEST(NativeLowering, refuses_experts_in_some_blocks_alone) {
  const Model model = model_of(R"({"model_type": "qwen3_moe", "hidden_size": 128,
    "num_hidden_layers": 4, "num_attention_heads": 4, "num_experts": 4, "num_experts_per_tok": 2,
    "mlp_only_layers": [1]})");
  EXPECT_THROW(estimate(model, native_plan(0, "bf16-master", 1), Calibration{}), InputError);
}

Plan ringed(std::int64_t stage, std::int64_t ranks, std::int64_t context) {
  Plan plan = native_plan(stage, "bf16-master", ranks);
  plan.parallel.context = context;
  return plan;
}

TEST(NativeRing, passes_keys_and_values_on_and_their_gradients_home) {
  const Model model = model_of(kLlama);
  constexpr std::int64_t kBlocks = 6, kContext = 4;
  const Plan plan = ringed(1, 8, kContext);
  std::int64_t passed = 0;
  for (const TrafficLine& line : estimate(model, plan, Calibration{}).traffic)
    if (line.what == "keys and values, or their gradients, to the next rank")
      passed += line.payload_bytes;
  const std::int64_t rows = plan.workload.micro_batch * plan.workload.sequence_length / kContext;
  const std::int64_t block = rows * 2 * 1024;  // elements
  // In 2 bytes forward and backward, as far as the last of the others; in 4 all the way round.
  EXPECT_EQ(passed, kBlocks * (2 * (kContext - 1) * 2 * block + kContext * 4 * block));
}

TEST(NativeRing, divides_states_over_ranks_that_share_sequences_too) {
  const Model model = model_of(kLlama);
  const std::int64_t psi = model.parameter_count();
  EXPECT_EQ(model_states(model, ringed(3, 4, 2)), 16 * psi / 4);
  EXPECT_EQ(model_states(model, ringed(1, 4, 4)), 4 * psi + 12 * psi / 4);
}

TEST(NativeRing, computes_as_much_on_every_rank_as_one_without_it_over_their_number) {
  const Model model = model_of(kLlama);
  const auto attention = [&](const Plan& plan, std::int64_t rank) {
    const RankModel share(model, plan);
    const Program program = lower(share.model(), plan, share.run(), rank);
    double flops = 0;
    for_each_event(program, [&](const Event& e, std::int64_t times) {
      if (e.kind != Event::Kind::compute) return;
      for_each_kernel(program, e, [&](const Kernel& k) {
        if (k.kind == KernelKind::attention || k.kind == KernelKind::attention_backward)
          flops += static_cast<double>(times) * flops_of(k);
      });
    });
    return flops;
  };
  const double whole = attention(native_plan(0, "bf16-master", 4), 0);
  for (std::int64_t rank = 0; rank < 4; ++rank)
    EXPECT_EQ(attention(ringed(0, 4, 4), rank), whole / 4) << rank;
}

TEST(NativeLowering, refuses_what_the_engine_does_not_run) {
  const Model model = model_of(R"({"model_type": "opt"})");
  EXPECT_THROW(estimate(model, native_plan(0, "bf16-master", 1), Calibration{}), InputError);
}

}  // namespace
}  // namespace shardplan
