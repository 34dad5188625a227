// What the tape keeps at the end of a forward pass against what PyTorch's autograd keeps:
// tests/golden/saved_tensors.json was written by tests/accuracy/measure/saved_tensors.py on a CPU.
// Both sides round every tensor up to the CUDA allocator's unit, so sums are compared exactly.
#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <set>

#include "json/document.h"
#include "load/model_config.h"
#include "model/architectures/registry.h"
#include "program/tape.h"

#include <nlohmann/json.hpp>

namespace shardplan {
namespace {

const Json& golden() {
  static const Json json = read_json_file(SHARDPLAN_SOURCE_DIR "/tests/golden/saved_tensors.json");
  return json;
}

struct Case {
  std::string name;
  const Json* json = nullptr;
  DType dtype = DType::f32;
  AttentionKind attention = AttentionKind::sdpa;
  Sizes sizes;

  explicit Case(const Json& j) : json(&j) {
    dtype = j.at("dtype") == "float32" ? DType::f32 : DType::bf16;
    attention = j.at("attention") == "sdpa" ? AttentionKind::sdpa : AttentionKind::eager;
    sizes = {.batch = j.at("batch").get<std::int64_t>(),
             .sequence = j.at("sequence").get<std::int64_t>()};
    name = j.at("case").get<std::string>() + "_" + j.at("attention").get<std::string>() + "_" +
           j.at("dtype").get<std::string>();
  }
  Model model() const {
    return build_model(load_model_config(json->at("config"), name), {.attention = attention});
  }
  std::int64_t block(std::int64_t bytes) const { return round_up(bytes, kAllocationUnit); }
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.name;
}

/// Calls visit(segment, run) for every repetition of every segment.
template <typename Visit>
void run_segments(const Case& c, const Model& model, Visit&& visit) {
  const Regime regime{c.dtype, c.dtype};
  DType input = c.dtype;
  for (const Segment& segment : model.segments) {
    for (std::int64_t i = 0; i < segment.repeat; ++i) {
      const TapeRun run = run_tape(model, segment, regime, c.sizes, input, TapeMode::keep);
      input = run.output_dtype;
      visit(segment, run);
    }
  }
}

/// Allocated and not freed when the forward pass has ended, without the loss itself.
std::int64_t kept_by_tape(const Case& c, const Model& model) {
  std::int64_t kept = 0, last_output = 0;
  run_segments(c, model, [&](const Segment&, const TapeRun& run) {
    for (const TapeEvent& e : run.forward) {
      if (e.kind == TapeEvent::Kind::alloc) kept += e.bytes;
      if (e.kind == TapeEvent::Kind::free) kept -= e.bytes;
    }
    last_output = run.output_bytes;
  });
  return kept - last_output;
}

/// Shared tensors that some operation keeps: factors of a product (the rotary tables) and the
/// additive mask of a fused attention. What is only added (the mask of eager attention) nothing
/// keeps.
std::int64_t kept_shared(const Case& c, const Model& model) {
  std::set<std::int32_t> saved;
  for (const Segment& segment : model.segments) {
    for (const Input& in : segment.graph.inputs()) {
      if (in.kind != InputKind::shared) continue;
      const bool square = segment.graph.value(in.value).extent.scale == Scale::scores;
      for (const Op& op : segment.graph.ops()) {
        const bool factor =
            op.kind == OpKind::mul && (op.in[0] == in.value || op.in[1] == in.value);
        if (factor || (square && op.kind == OpKind::sdpa)) saved.insert(in.shared);
      }
    }
  }
  std::int64_t bytes = 0;
  for (const std::int32_t i : saved) {
    const Shared& s = model.shared[static_cast<std::size_t>(i)];
    bytes += c.block(elements(s.extent, c.sizes) * size_of(s.f32 ? DType::f32 : c.dtype));
  }
  return bytes;
}

// Where a CPU keeps something else than a GPU, or the graph leaves something out on purpose.

/// Without a fused kernel, dropout multiplies by a noise tensor of the input's type; CUDA's keeps a
/// mask of one byte an element.
std::int64_t dropout_noise(const Case& c, const Model& model) {
  std::int64_t extra = 0;
  for (const Segment& segment : model.segments)
    for (const Op& op : segment.graph.ops())
      if (op.kind == OpKind::dropout) {
        const std::int64_t n = elements(segment.graph.value(op.out).extent, c.sizes);
        extra += segment.repeat * (c.block(n * size_of(c.dtype)) - c.block(n));
      }
  return extra;
}

/// LayerNorm's row statistics have the parameters' type on a CPU and are fp32 on a GPU.
std::int64_t narrow_statistics(const Case& c, const Model& model) {
  std::int64_t extra = 0;
  for (const Segment& segment : model.segments)
    for (const Op& op : segment.graph.ops())
      if (op.kind == OpKind::layer_norm) {
        const std::int64_t rows = elements(op.side, c.sizes);
        extra += segment.repeat * 2 * (c.block(rows * size_of(c.dtype)) - c.block(rows * 4));
      }
  return extra;
}

/// The loss keeps the number of labels that it counted, a scalar that the graph leaves out.
std::int64_t label_count(const Case& c) {
  return c.block(4);
}

/// Learned positions keep their indices, which the graph leaves out: [1, s], for OPT [b, s].
std::int64_t position_indices(const Case& c, const Model& model) {
  const std::string& type = model.facts.model_type;
  if (type == "gpt2" || type == "gpt_neo") return c.block(c.sizes.sequence * 8);
  if (type == "opt") return c.block(c.sizes.batch * c.sizes.sequence * 8);
  return 0;
}

class SavedTensors : public testing::TestWithParam<Case> {};

TEST_P(SavedTensors, AreThoseThatAutogradKeeps) {
  const Case& c = GetParam();
  std::int64_t reference = 0;
  for (const Json& group : c.json->at("storages"))
    reference += group.at(0).get<std::int64_t>() * c.block(group.at(1).get<std::int64_t>());
  const Model model = c.model();
  const std::int64_t exceptions = dropout_noise(c, model) + narrow_statistics(c, model) +
                                  label_count(c) + position_indices(c, model);
  EXPECT_EQ(kept_by_tape(c, model) + kept_shared(c, model) + exceptions, reference);
}

std::vector<Case> cases() {
  std::vector<Case> out;
  for (const Json& j : golden().at("cases")) out.emplace_back(j);
  return out;
}

std::string test_name(const testing::TestParamInfo<Case>& info) {
  return std::regex_replace(info.param.name, std::regex("[^A-Za-z0-9]"), "_");
}

INSTANTIATE_TEST_SUITE_P(Golden, SavedTensors, testing::ValuesIn(cases()), test_name);

TEST(ParameterOrder, IsThatOfNamedParameters) {
  std::map<std::string, const Json*> configs;
  for (const Json& j : golden().at("cases")) configs[j.at("case").get<std::string>()] = &j;
  for (const auto& [name, order] : golden().at("parameter_order").items()) {
    const Model model = build_model(load_model_config(configs.at(name)->at("config"), name), {});
    std::vector<std::string> names;
    for (const ParameterGroup& group : model.groups)
      for (std::int64_t i = 0; i < group.repeat; ++i)
        for (std::int32_t k = group.first; k < group.first + group.count; ++k)
          names.push_back(std::regex_replace(model.parameters[static_cast<std::size_t>(k)].name,
                                             std::regex(R"(\{\})"),
                                             std::to_string(group.start + i)));
    EXPECT_EQ(names, order.get<std::vector<std::string>>()) << name;
  }
}

}  // namespace
}  // namespace shardplan
