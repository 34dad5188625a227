// Low-rank adapters beside a frozen base, of elements or of 4 bits.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <mutex>

#include "engine/lora/quantized.h"
#include "kernels/host/host_backend.h"
#include "validator/engine_testing.h"

namespace shardplan::validator::lora_test {
namespace {

using namespace testing;

/// All matrices, some of those that are fused, each that may be the lowest; biases, head norms.
std::vector<DecoderSpec> specs() {
  return {
      adapted(tiny_llama(), {"q_proj", "v_proj"}),    adapted(tiny_llama(), {"up_proj"}),
      adapted(tiny_llama(), {"down_proj"}),           adapted(tiny_qwen3(), {"all-linear"}),
      adapted(tiny_qwen3(), {"o_proj", "gate_proj"}), adapted(tiny_gpt2(), {"c_attn", "c_proj"})};
}

/// Attention has adapters, and a base of 4 bits; experts and routers have neither, and the balance
/// of the routers counts.
std::vector<DecoderSpec> beside_experts() {
  return {adapted(tiny_mixtral(), {"all-linear"}), adapted(tiny_qwen3_moe(), {"o_proj", "k_proj"}),
          adapted(tiny_mixtral(), {"all-linear"}, BaseStore::nf4),
          adapted(tiny_qwen3_moe(), {"all-linear"}, BaseStore::nf4_double)};
}

/// Experts have adapters, beside attention's or alone, each matrix once as the lowest.
std::vector<DecoderSpec> of_experts() {
  return {with_experts(adapted(tiny_mixtral(), {"all-linear"}),
                       {"mlp.experts.gate_up_proj", "mlp.experts.down_proj"}),
          with_experts(adapted(tiny_qwen3_moe(), {}), {"experts.gate_up_proj"}),
          with_experts(adapted(tiny_mixtral(), {}), {"down_proj"}),
          with_experts(adapted(tiny_qwen3_moe(), {"o_proj"}, BaseStore::nf4_double),
                       {"gate_up_proj", "down_proj"})};
}

/// Experts have 4 bits, with adapters of their own and without.
std::vector<DecoderSpec> of_quantized_experts(BaseStore base) {
  return {with_quantized_experts(adapted(tiny_mixtral(), {"all-linear"}, base)),
          with_quantized_experts(with_experts(adapted(tiny_qwen3_moe(), {"all-linear"}, base),
                                              {"gate_up_proj", "down_proj"})),
          with_quantized_experts(with_experts(adapted(tiny_mixtral(), {}, base), {"down_proj"}))};
}

std::vector<DecoderSpec> all_with_experts() {
  std::vector<DecoderSpec> all = beside_experts();
  for (DecoderSpec& spec : of_experts()) all.push_back(std::move(spec));
  for (DecoderSpec& spec : of_quantized_experts(BaseStore::nf4)) all.push_back(std::move(spec));
  all.push_back(of_quantized_experts(BaseStore::nf4_double)[1]);
  return all;
}

TestRun run_of(int stage, int world, std::int64_t accumulation, DType dtype = DType::f32) {
  TestRun run{.world = world};
  run.options.stage = stage;
  run.options.dtype = dtype;
  run.options.accumulation = accumulation;
  run.options.optimizer.states = dtype == DType::f64 ? DType::f64 : DType::f32;
  run.options.schedule = ConstantLr{3e-3};
  if (dtype == DType::bf16) run.options.optimizer.master = DType::f32;
  return run;
}

/// Adapters of which both factors have values, as after some steps.
void fill_adapters(Trainer& trainer) {
  const std::vector<Unit>& units = trainer.network().units();
  for (std::size_t u = 0; u < units.size(); ++u)
    if (units[u].adapts())
      trainer.runtime().device.fill_normal(trainer.weights().owned(static_cast<int>(u)), 0.3F, 7,
                                           static_cast<std::int64_t>(1000 * u));
}

void expect_gradients_match(const DecoderSpec& spec, Keep keep) {
  TestRun run = run_of(0, 1, 2, DType::f64);
  run.keep = keep;
  with_trainers(spec, run, [&](Trainer& trainer, BatchSource& batches) {
    fill_adapters(trainer);
    trainer.gradients_of(batches);
    const std::vector<Unit>& units = trainer.network().units();
    std::vector<std::vector<double>> analytic;
    for (std::size_t u = 0; u < units.size(); ++u) {
      const Tensor owned = trainer.gradients().owned(static_cast<int>(u));
      ASSERT_EQ(owned.empty(), !units[u].adapts()) << units[u].name;
      analytic.emplace_back();
      if (!owned.empty())
        analytic.back().assign(owned.as<double>(), owned.as<double>() + owned.numel());
    }
    for (std::size_t u = 0; u < units.size(); ++u) {
      if (analytic[u].empty()) continue;
      double* values = trainer.weights().owned(static_cast<int>(u)).as<double>();
      constexpr double kStep = 1e-5;
      for (const ParameterSpec& p : units[u].parameters) {
        const std::int64_t stride = std::max<std::int64_t>(1, p.shape.numel() / 7);
        for (std::int64_t i = p.offset; i < p.offset + p.shape.numel(); i += stride) {
          const double at = values[i];
          values[i] = at + kStep;
          const double above = trainer.gradients_of(batches);
          values[i] = at - kStep;
          const double below = trainer.gradients_of(batches);
          values[i] = at;
          const double numeric = (above - below) / (2 * kStep);
          EXPECT_NEAR(analytic[u][static_cast<std::size_t>(i)], numeric,
                      1e-7 + 1e-6 * std::abs(numeric))
              << units[u].name << "." << p.name << " element " << i - p.offset;
        }
      }
    }
  });
}

TEST(Lora, has_the_gradients_of_finite_differences_and_none_of_the_base) {
  for (const DecoderSpec& spec : specs())
    for (const Keep keep : {Keep::everything, Keep::products, Keep::inputs})
      expect_gradients_match(spec, keep);
  expect_gradients_match(adapted(tiny_llama(), {"all-linear"}, BaseStore::nf4), Keep::everything);
  for (const DecoderSpec& spec : all_with_experts())
    for (const Keep keep : {Keep::everything, Keep::products, Keep::inputs})
      expect_gradients_match(spec, keep);
}

/// The values of a rank's parameters, by unit and parameter.
using Values = std::map<std::string, std::vector<float>>;

Values values_of(Trainer& trainer) {
  Values all;
  const std::vector<Unit>& units = trainer.network().units();
  for (std::size_t u = 0; u < units.size(); ++u) {
    const Tensor flat = trainer.weights().owned(static_cast<int>(u));
    for (const QuantizedMatrix& m : units[u].quantized) {
      std::vector<float>& to =
          all[units[u].name.substr(0, units[u].name.rfind('.')) + "." + m.values.name];
      to.resize(static_cast<std::size_t>(m.values.whole.numel()));
      std::vector<float> here(static_cast<std::size_t>(m.values.shape.numel()));
      trainer.runtime().device.widen(
          {reinterpret_cast<std::uintptr_t>(here.data()), DType::f32, m.values.shape},
          nf4_matrix(units[u], m, flat));
      for_each_run(m.values, [&](const Run& run) {
        std::copy_n(here.begin() + run.here, run.length, to.begin() + run.whole);
      });
    }
    if (!units[u].quantized.empty()) continue;
    for (const ParameterSpec& p : units[u].parameters) {
      const float* from = flat.as<float>() + p.offset;
      all[units[u].name + "." + p.name].assign(from, from + p.shape.numel());
    }
  }
  return all;
}

void set_values(Trainer& trainer, const Values& values) {
  const std::vector<Unit>& units = trainer.network().units();
  for (std::size_t u = 0; u < units.size(); ++u)
    for (const ParameterSpec& p : units[u].parameters) {
      const std::vector<float>& from = values.at(units[u].name + "." + p.name);
      std::copy(from.begin(), from.end(),
                trainer.weights().owned(static_cast<int>(u)).as<float>() + p.offset);
    }
}

/// [rows, columns] of numbers within a parameter.
struct Part {
  std::vector<float>& values;
  std::int64_t first = 0, rows = 0, columns = 0;
  float& at(std::int64_t r, std::int64_t c) const {
    return values[static_cast<std::size_t>(first + r * columns + c)];
  }
};

/// w += scale · b a, in double.
void add_product(const Part& w, const Part& b, const Part& a, float scale) {
  for (std::int64_t r = 0; r < w.rows; ++r)
    for (std::int64_t c = 0; c < w.columns; ++c) {
      double sum = 0;
      for (std::int64_t k = 0; k < a.rows; ++k)
        sum += static_cast<double>(b.at(r, k)) * static_cast<double>(a.at(k, c));
      w.at(r, c) =
          static_cast<float>(static_cast<double>(w.at(r, c)) + static_cast<double>(scale) * sum);
    }
}

/// The same expert by expert.
void merge_experts(const DecoderSpec& spec, Values& values) {
  for (std::int64_t block = 0; block < spec.layers; ++block)
    for (const Linear l : {Linear::up, Linear::down}) {
      const std::string name = "blocks." + std::to_string(block) + ".", module(name_of(l)),
                        factor = name + "expert_adapters." + module;
      if (values.count(factor + ".lora_A") == 0) continue;
      const auto [outputs, inputs] = sides_of(spec, l);
      const std::int64_t rank = spec.lora->rank;
      for (std::int64_t e = 0; e < spec.experts->count; ++e)
        add_product({values.at(name + "experts." + module + ".weight"), e * outputs * inputs,
                     outputs, inputs},
                    {values.at(factor + ".lora_B"), e * outputs * rank, outputs, rank},
                    {values.at(factor + ".lora_A"), e * rank * inputs, rank, inputs},
                    spec.lora->scale);
    }
}

/// The same layer by layer.
void merge(const DecoderSpec& spec, Values& values) {
  for (std::int64_t block = 0; block < spec.layers; ++block)
    for (const Linear l : kLinears) {
      const std::string name = "blocks." + std::to_string(block) + ".";
      const std::string module(name_of(l));
      if (values.count(name + "adapters." + module + ".lora_A") == 0) continue;
      std::vector<float>& a = values.at(name + "adapters." + module + ".lora_A");
      std::vector<float>& b = values.at(name + "adapters." + module + ".lora_B");
      std::vector<float>& w = values.at(name + module + ".weight");
      const std::int64_t rank = spec.lora->rank;
      std::int64_t part = 0, above = 0, parts = 0, rows = 0;
      for (const LayerRows& layer : layers_of(spec, l)) rows += layer.count;
      for (const LayerRows& layer : layers_of(spec, l)) parts += is_adapted(spec, layer) ? 1 : 0;
      const std::int64_t inputs = static_cast<std::int64_t>(a.size()) / (parts * rank);
      ASSERT_EQ(rows * inputs, static_cast<std::int64_t>(w.size()));
      for (const LayerRows& layer : layers_of(spec, l)) {
        if (!is_adapted(spec, layer)) continue;
        add_product({w, layer.first * inputs, layer.count, inputs},
                    {b, above * rank, layer.count, rank}, {a, part * rank * inputs, rank, inputs},
                    spec.lora->scale);
        above += layer.count;
        ++part;
      }
    }
}

/// The batches of one step.
class StepBatches final : public BatchSource {
 public:
  StepBatches(BatchSource& all, std::int64_t step) : all_(all), step_(step) {}
  Batch next(std::int64_t, std::int64_t micro) override { return all_.next(step_, micro); }

 private:
  BatchSource& all_;
  std::int64_t step_;
};

TEST(Lora, has_the_losses_of_a_dense_model_with_the_adapters_merged) {
  std::vector<DecoderSpec> all = specs();
  for (DecoderSpec& spec : of_experts())
    if (spec.lora->base == BaseStore::values) all.push_back(std::move(spec));
  for (const DecoderSpec& spec : all) {
    std::vector<Values> merged;
    std::vector<double> losses;
    with_trainers(spec, run_of(0, 1, 2), [&](Trainer& trainer, BatchSource& batches) {
      for (int i = 0; i < 10; ++i) {
        merged.push_back(values_of(trainer));
        merge(spec, merged.back());
        merge_experts(spec, merged.back());
        losses.push_back(trainer.step(batches).loss);
      }
    });
    DecoderSpec dense = spec;
    dense.lora.reset();
    with_trainers(dense, run_of(0, 1, 2), [&](Trainer& trainer, BatchSource& batches) {
      for (std::size_t i = 0; i < losses.size(); ++i) {
        set_values(trainer, merged[i]);
        StepBatches step(batches, static_cast<std::int64_t>(i));
        EXPECT_NEAR(losses[i], trainer.gradients_of(step), 1e-6 * losses[i])
            << spec.family << ", step " << i + 1;
      }
      set_values(trainer, merged.front());
      StepBatches last(batches, static_cast<std::int64_t>(losses.size()) - 1);
      EXPECT_LT(losses.back(), trainer.gradients_of(last)) << "nothing was learned";
    });
  }
}

TEST(Lora, beside_experts_has_the_same_losses_however_they_are_divided) {
  for (const DecoderSpec& spec : all_with_experts()) {
    const auto one = train(spec, run_of(0, 1, 4), 20);
    TestRun frozen = run_of(0, 1, 4);
    frozen.options.schedule = ConstantLr{0};
    EXPECT_LT(one.back().loss, 0.999 * train(spec, frozen, 20).back().loss);
    for (const int stage : {0, 1, 2, 3})
      for (const auto& [world, experts] : {std::pair{2, 1}, {2, 2}, {4, 2}}) {
        TestRun run = run_of(stage, world, 4 / world);
        run.experts = experts;
        const auto divided = train(spec, run, 20);
        for (std::size_t i = 0; i < one.size(); ++i)
          EXPECT_NEAR(one[i].loss, divided[i].loss, 1e-6 * one[i].loss)
              << "stage " << stage << ", " << world << " ranks, step " << i + 1;
      }
  }
}

TEST(Lora, begins_with_the_loss_of_the_base) {
  DecoderSpec dense = tiny_qwen3();
  EXPECT_EQ(train(dense, run_of(0, 1, 1), 1).front().loss,
            train(adapted(dense, {"all-linear"}), run_of(0, 1, 1), 1).front().loss);
}

class Qlora : public ::testing::TestWithParam<BaseStore> {};

TEST_P(Qlora, has_the_losses_of_adapters_beside_what_4_bits_stand_for) {
  std::vector<DecoderSpec> all = of_quantized_experts(GetParam());
  for (const DecoderSpec& plain :
       {tiny_llama(), tiny_qwen3(), tiny_gpt2(), tiny_mixtral(), tiny_qwen3_moe()})
    all.push_back(adapted(plain, {"all-linear"}, GetParam()));
  for (const DecoderSpec& quantized : all) {
    DecoderSpec wide = quantized;
    wide.lora->base = BaseStore::values;
    wide.lora->base_of_experts = false;
    Values values;
    std::vector<double> losses;
    with_trainers(quantized, run_of(0, 1, 2), [&](Trainer& trainer, BatchSource& batches) {
      values = values_of(trainer);
      for (int i = 0; i < 10; ++i) losses.push_back(trainer.step(batches).loss);
    });
    with_trainers(wide, run_of(0, 1, 2), [&](Trainer& trainer, BatchSource& batches) {
      set_values(trainer, values);
      trainer.begin();
      for (const double loss : losses)
        EXPECT_NEAR(loss, trainer.step(batches).loss, 1e-6 * loss) << quantized.family;
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Bases, Qlora, ::testing::Values(BaseStore::nf4, BaseStore::nf4_double));

void expect_losses(const std::vector<StepResult>& one, const std::vector<StepResult>& many,
                   const std::string& what) {
  ASSERT_EQ(one.size(), many.size());
  for (std::size_t i = 0; i < one.size(); ++i) {
    EXPECT_NEAR(one[i].loss, many[i].loss, 1e-6 * one[i].loss) << what << ", step " << i + 1;
    EXPECT_NEAR(one[i].gradient_norm, many[i].gradient_norm, 1e-5 * one[i].gradient_norm)
        << what << ", step " << i + 1;
  }
}

class DividedLora : public ::testing::TestWithParam<int> {};

TEST_P(DividedLora, gives_the_losses_of_one_rank_over_50_steps_in_fp32) {
  for (const DecoderSpec& spec :
       {adapted(tiny_llama(), {"q_proj", "v_proj"}), adapted(tiny_qwen3(), {"all-linear"}),
        adapted(tiny_gpt2(), {"c_fc"}), adapted(tiny_llama(), {"all-linear"}, BaseStore::nf4),
        adapted(tiny_qwen3(), {"all-linear"}, BaseStore::nf4_double)}) {
    const auto one = train(spec, run_of(0, 1, 4), 50);
    TestRun frozen = run_of(0, 1, 4);
    frozen.options.schedule = ConstantLr{0};
    EXPECT_LT(one.back().loss, 0.999 * train(spec, frozen, 50).back().loss);
    for (const int world : {1, 2, 4})
      expect_losses(one, train(spec, run_of(GetParam(), world, 4 / world), 50),
                    spec.family + " on " + std::to_string(world));
  }
}

TEST_P(DividedLora, does_not_change_when_blocks_are_done_again) {
  for (const BaseStore base : {BaseStore::values, BaseStore::nf4_double}) {
    const DecoderSpec spec = adapted(tiny_qwen3(), {"q_proj", "down_proj"}, base);
    const auto one = train(spec, run_of(0, 1, 4), 10);
    for (const Keep keep : {Keep::products, Keep::inputs}) {
      TestRun run = run_of(GetParam(), 2, 2);
      run.keep = keep;
      expect_losses(one, train(spec, run, 10), "done again");
    }
  }
}

TEST_P(DividedLora, learns_in_bf16_with_masters) {
  const DecoderSpec spec = adapted(tiny_llama(), {"all-linear"}, BaseStore::nf4_double);
  TestRun run = run_of(GetParam(), 2, 1, DType::bf16);
  run.micro_batch = 8;
  run.options.schedule = ConstantLr{1e-2};
  const double learned = train(spec, run, 200).back().loss;
  run.options.schedule = ConstantLr{0};
  EXPECT_LT(learned, 0.9 * train(spec, run, 200).back().loss);
}

INSTANTIATE_TEST_SUITE_P(Zero, DividedLora, ::testing::Values(0, 1, 2, 3));

std::vector<float> noise(std::size_t count) {
  std::vector<float> values;
  for (std::size_t i = 0; i < count; ++i)
    values.push_back(unit_interval(static_cast<std::uint32_t>(random_bits(9, i, 0))) - 0.5F);
  return values;
}

template <typename T>
Tensor tensor_of(const std::vector<T>& from, DType dtype) {
  return {reinterpret_cast<std::uintptr_t>(from.data()), dtype,
          Shape{static_cast<std::int64_t>(from.size() * sizeof(T)) / size_of(dtype)}};
}

/// The parts of a matrix of 4 bits.
struct Nf4Bytes {
  std::vector<std::byte> codes, scales, outer;
  Nf4Matrix matrix() const {
    return {tensor_of(codes, DType::i8), tensor_of(scales, outer.empty() ? DType::f32 : DType::i8),
            tensor_of(outer, DType::f32)};
  }
};

Nf4Bytes quantize_nf4(const std::vector<float>& values, bool doubled) {
  const std::size_t blocks = (values.size() + 63) / 64;
  Nf4Bytes bytes{.codes = std::vector<std::byte>((values.size() + 1) / 2),
                 .scales = std::vector<std::byte>(doubled ? blocks : 4 * blocks),
                 .outer = std::vector<std::byte>(doubled ? 4 * (1 + (blocks + 255) / 256) : 0)};
  make_host_backend(0)->quantize(bytes.matrix(), tensor_of(values, DType::f32));
  return bytes;
}

/// What the parts stand for, as the host's kernel widens them.
std::vector<float> widened(const Nf4Bytes& bytes, std::size_t count) {
  std::vector<float> values(count);
  make_host_backend(0)->widen(tensor_of(values, DType::f32), bytes.matrix());
  return values;
}

TEST(Nf4, keeps_the_values_of_its_codes_and_takes_the_nearest_for_others) {
  std::vector<float> exact(64);
  for (std::size_t i = 0; i < exact.size(); ++i) exact[i] = 3 * kNf4Values[i % 16];
  EXPECT_EQ(widened(quantize_nf4(exact, false), exact.size()), exact);

  const std::vector<float> values = noise(64 * 300 + 7);
  const Nf4Bytes bytes = quantize_nf4(values, false);
  EXPECT_EQ(static_cast<int>(bytes.codes.back()) & 15, 0) << "nothing is beyond the last element";
  const std::vector<float> back = widened(bytes, values.size());
  for (std::size_t begin = 0; begin < values.size(); begin += 64) {
    const std::size_t end = std::min(begin + 64, values.size());
    float most = 0;
    for (std::size_t i = begin; i < end; ++i) most = std::max(most, std::abs(values[i]));
    for (std::size_t i = begin; i < end; ++i) {
      float nearest = 2;
      for (const float code : kNf4Values)
        if (std::abs(code * most - values[i]) < std::abs(nearest * most - values[i]))
          nearest = code;
      EXPECT_FLOAT_EQ(back[i], nearest * most) << i;
    }
  }
}

TEST(Nf4, keeps_scales_in_8_bits_to_half_a_step) {
  std::vector<float> values = noise(64 * 600);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] *= 1 + static_cast<float>(i / 64 % 7);  // scales that differ
  const Nf4Bytes single = quantize_nf4(values, false), doubled = quantize_nf4(values, true);
  EXPECT_EQ(single.codes, doubled.codes);
  const std::vector<float> a = widened(single, values.size()), b = widened(doubled, values.size());
  const float step = 3.5F / 127;  // scales are from 0.5 to 3.5, their mean between
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(a[i], b[i], step / 2) << i;
}

TEST(Nf4, of_zeros_is_zeros) {
  for (const bool doubled : {false, true})
    for (const float x : widened(quantize_nf4(std::vector<float>(200), doubled), 200))
      EXPECT_EQ(x, 0);
}

}  // namespace
}  // namespace shardplan::validator::lora_test
