// How a model and its samples are divided over the GPUs beside data parallelism.
//
// The world is data × pipeline × context × sequence × tensor GPUs. Data is what is left of it
// (Plan::data_ranks), so that no number is kept twice. Experts are divided over ranks that the
// other degrees have made already, and multiply nothing.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace shardplan {

/// The order in which a stage takes micro-batches.
enum class PipelineSchedule : std::uint8_t {
  gpipe,        ///< all forwards, then all backwards
  one_f_one_b,  ///< a backward as soon as one is ready
  interleaved,  ///< the same, with several chunks of the model on each stage
  zbv,          ///< two chunks on each stage, the first and the last on the same: a V
};

/// What a stage's share of the model is measured in.
enum class StageBalance : std::uint8_t {
  blocks,           ///< as many blocks each; the embedding and the head come on top
  blocks_and_ends,  ///< the embedding and the head count as a block each
  parameters,       ///< as near to equal parameters as whole blocks allow (DeepSpeed's default)
};

/// The names used in job files.
constexpr std::string_view name_of(PipelineSchedule schedule) {
  return schedule == PipelineSchedule::gpipe         ? "gpipe"
         : schedule == PipelineSchedule::one_f_one_b ? "1f1b"
         : schedule == PipelineSchedule::interleaved ? "interleaved"
                                                     : "zbv";
}
constexpr std::string_view name_of(StageBalance balance) {
  return balance == StageBalance::blocks            ? "blocks"
         : balance == StageBalance::blocks_and_ends ? "blocks_and_ends"
                                                    : "parameters";
}

struct Parallel {
  std::int64_t tensor = 1;
  std::int64_t pipeline = 1;
  std::int64_t virtual_pipeline = 1;  ///< chunks of the model on each stage
  std::int64_t sequence = 1;          ///< Ulysses: all-to-all between sequence and heads
  std::int64_t context = 1;           ///< ring attention: keys and values go round
  std::int64_t expert = 1;            ///< ranks that share the experts of a layer
  std::int64_t expert_tensor = 1;     ///< ranks that share one expert
  /// Tokens that the fullest rank's experts are sent, over the mean. Routing decides it; 1 is even.
  double expert_imbalance = 1;
  /// Megatron's: what tensor parallelism would keep on each of its ranks is divided along tokens.
  bool sequence_parallel = false;
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  StageBalance balance = StageBalance::blocks;
  /// Blocks of each chunk in the order of the model, where the user says them; else empty.
  std::vector<std::int64_t> stage_layers;

  /// Chunks that the schedule puts on each stage are several.
  bool has_chunks() const {
    return schedule == PipelineSchedule::interleaved || schedule == PipelineSchedule::zbv;
  }
  /// The stage that has chunk `c`, in the order of the model.
  std::int64_t stage_of_chunk(std::int64_t c) const {
    const std::int64_t round = c % pipeline;
    return schedule == PipelineSchedule::zbv && c >= pipeline ? pipeline - 1 - round : round;
  }

  /// GPUs that work on the same samples.
  std::int64_t model_ranks() const { return tensor * pipeline * sequence * context; }
  friend bool operator==(const Parallel&, const Parallel&) = default;
  bool only_data() const { return model_ranks() == 1 && virtual_pipeline == 1 && expert == 1; }
};

}  // namespace shardplan
