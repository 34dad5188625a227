// Small graphs and runs of them for tests of the tape's parts.
#pragma once

#include <vector>

#include "model/builder.h"
#include "model/layers/basic.h"
#include "program/tape/parts.h"

namespace shardplan::tape {

inline constexpr std::int64_t kTestTokens = 64;
inline const Sizes kTestSizes{1, kTestTokens, 0};
inline constexpr Regime kTestPure{DType::bf16, DType::bf16};
inline constexpr Regime kTestAutocast{DType::f32, DType::bf16};
inline constexpr std::int64_t kTestWidth = 32;

/// One segment: y = W2·(W1·x).
inline Model two_linears() {
  ModelBuilder m({});
  const LinearModule first = m.linear("first", kTestWidth, 4 * kTestWidth);
  const LinearModule second = m.linear("second", 4 * kTestWidth, kTestWidth, true);
  Graph& g = m.begin_segment("layer");
  const ValueId x = g.chained_input({kTestWidth, Scale::tokens});
  g.set_output(apply(g, second, apply(g, first, x)));
  return m.build();
}

/// The parts of a run of a model's first segment.
struct TestRun {
  explicit TestRun(Model of, const Regime& types = kTestPure, TapeMode mode = TapeMode::keep,
                   const TapeOptions& with = {})
      : model(std::move(of)),
        regime(types),
        options(with),
        parts(model, model.segments.front(), regime, kTestSizes, types.params, mode, options, run) {
  }
  /// Gives every value the types that the forward pass gives it.
  void set_types() {
    for (const Op& op : parts.graph().ops()) {
      ValueState& out = parts.view.state(op.out);
      out.needs_grad = parts.view.needs_grad(op);
      out.dtype = parts.view.result_type(op);
    }
  }
  const Op& op(std::size_t i) const { return parts.graph().ops()[i]; }

  Model model;
  Regime regime;
  TapeOptions options;
  TapeRun run;
  Parts parts;
};

inline std::vector<TapeEvent::Kind> kinds_of(const std::vector<TapeEvent>& events) {
  std::vector<TapeEvent::Kind> kinds;
  for (const TapeEvent& event : events) kinds.push_back(event.kind);
  return kinds;
}

}  // namespace shardplan::tape
