// The time of one pass of a serving engine: tokens of sequences that are generated and tokens of
// prompts, side by side. An engine runs what a network computes with fewer kernels than PyTorch:
// products that read the same input are one, what stands between two products is one, keys and
// values are in pages, and CUDA graphs start everything. docs/explanation/serving.md derives the
// sums.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lowering/rank_model.h"
#include "model/model.h"
#include "plan/plan.h"
#include "serving/expert_products.h"
#include "timing/kernel_time.h"
#include "timing/rates.h"

namespace shardplan {

/// What a pass takes.
struct EngineLoad {
  double decoding = 0;       ///< sequences that get one token each
  double context = 0;        ///< tokens that each of them has, in the mean
  double prompt_tokens = 0;  ///< of prompts that are taken in
  double prompt_length = 0;  ///< of each of these prompts, what it shares with others left out
  double prompt_past = 0;    ///< tokens before them: those that are shared
};

/// Seconds of one pass, by what they are spent on.
struct EnginePassTime {
  double products = 0;
  double attention = 0;
  double between = 0;    ///< the kernels between products, and choosing tokens
  double exchanges = 0;  ///< among the GPUs that share the layers
  double host = 0;       ///< what the engine itself takes between two passes
  double seconds() const { return products + attention + between + exchanges + host; }
  void add(const EnginePassTime& pass, double times);
};

/// A network as one GPU of an engine runs it.
class ServedNetwork {
 public:
  /// `plan` has an engine. `model` must outlive this where nothing is divided.
  ServedNetwork(const Model& model, const Plan& plan, const TimeRates& rates);

  /// None of the times is known where the GPU has no rates (knows_time): then all are 0.
  EnginePassTime time_of(const EngineLoad& load) const;

  /// Keys and values of a sequence of so many tokens on one GPU, in bytes.
  double cache_bytes(double tokens) const;

 private:
  /// All but the head, whose rows are other ones.
  void add_body(EnginePassTime& time, double rows) const;
  void add_head(EnginePassTime& time, double rows) const;
  void add_exchanges(EnginePassTime& time, const SegmentRun& segment) const;
  void add_attention(EnginePassTime& time, const EngineLoad& load) const;
  /// Of one prompt of the load, seconds.
  double prompt_attention(const EngineLoad& load) const;
  double starting(const EngineLoad& load) const;
  double scoring(const EngineLoad& load) const;
  double waited_for(const EngineLoad& load) const;
  double again_seconds(double bytes) const;
  ModelRun run_of(std::int64_t rows, std::int64_t tokens, std::int64_t past) const;
  double product_seconds(const Kernel& product, bool in_blocks) const;
  /// Operands of products are made by kernels of their own.
  bool quantizes() const;
  std::optional<double> tiled_seconds(const Kernel& product, bool in_blocks,
                                      ExpertProduct asked) const;
  void add_products(EnginePassTime& time, const SegmentRun& segment, double rows) const;

  const Model& model() const { return share_.model(); }

  Plan plan_;
  RankModel share_;
  TimeRates rates_;
  GpuPeaks peaks_;
};

}  // namespace shardplan
