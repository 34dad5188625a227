// bitsandbytes' AdamW (optim/optimizer.py Optimizer2State, 0.50): each tensor's update is a kernel
// and a wait for it.
#pragma once

#include "optimizers/rules.h"

namespace shardplan::bitsandbytes {

/// get_state_buffer takes managed memory from here on.
inline constexpr std::int64_t kPagedFrom = 100'000;
inline constexpr std::int64_t kBlock = 256;  ///< elements a scale is for

inline constexpr std::string_view kStopsAtShards =
    "bitsandbytes 0.50's kernels stop at sharded parameters (DTensor)";

/// HF Trainer and StableEmbedding keep embeddings in 32 bits (GlobalOptimManager).
inline constexpr std::array kOptions{OptimizerOption{
    .key = "embeddings_32bit", .help = "embeddings keep fp32 states, as HF Trainer has it"}};

inline bool quantizes(const Updated& t, const Optimizer& o) {
  const bool embedding = t.parameter != nullptr && t.parameter->kind == ParameterKind::embedding;
  return t.numel >= kLeastQuantized && !(embedding && option_of(o, "embeddings_32bit") != 0);
}
inline std::int64_t codes(const Updated& t, const Optimizer& o) {
  return quantizes(t, o) ? t.numel : 0;
}
inline std::int64_t small(const Updated& t, const Optimizer& o) {
  return quantizes(t, o) ? 0 : t.numel;
}
inline std::int64_t scales(const Updated& t, const Optimizer& o) {
  return quantizes(t, o) ? ceil_div(t.numel, kBlock) : 0;
}

/// Of 8 bits: weight, gradient, and states of a quarter of the width; of 32 as AdamW. For flat
/// buffers.
inline UpdatePasses passes_8bit(const Optimizer&) {
  return {3.5, 1};
}
inline UpdatePasses passes_32bit(const Optimizer&) {
  return {7, 1};
}

/// Two states of a byte, or of fp32.
inline TensorUpdate update_8bit(const Updated& t, const Optimizer& o) {
  return quantizes(t, o) ? TensorUpdate{true, 2 * 2} : TensorUpdate{false, 2 * 8};
}
inline TensorUpdate update_32bit(const Updated&, const Optimizer&) {
  return {false, 2 * 8};
}

inline constexpr std::array kVariants8Bit{Variant{.implementation = OptimizerImplementation::fused,
                                                  .one_by_one = true,
                                                  .passes = passes_8bit,
                                                  .update = update_8bit}};
inline constexpr std::array kVariants32Bit{Variant{.implementation = OptimizerImplementation::fused,
                                                   .one_by_one = true,
                                                   .passes = passes_32bit,
                                                   .update = update_32bit}};

/// Quantized moments and their scales; small tensors' and overridden ones in fp32. The two maps of
/// 256 values that all share (2 KiB) are not counted.
constexpr std::array<State, 6> states_8bit(std::int64_t paged_from) {
  return {{{"state1", StateType::byte, codes, paged_from},
           {"state2", StateType::byte, codes, paged_from},
           {"absmax1", StateType::fp32, scales},
           {"absmax2", StateType::fp32, scales},
           {"state1", StateType::fp32, small, paged_from},
           {"state2", StateType::fp32, small, paged_from}}};
}

inline constexpr std::array<Evidence, kGivenKinds> kEvidence{
    {{Source::exact, "bitsandbytes' own states on a CPU"},
     {Source::modelled, "bitsandbytes 0.50 stops"},
     {Source::modelled, "bitsandbytes optim/optimizer.py read: its rules for one long vector"}}};
/// Which of them are on the GPU is the driver's choice.
inline constexpr std::array<Evidence, kGivenKinds> kPagedEvidence{
    {{Source::modelled, "bitsandbytes' own states on a CPU; the driver moves them"},
     {Source::modelled, "bitsandbytes 0.50 stops"},
     {Source::modelled, "bitsandbytes optim/optimizer.py read"}}};
inline constexpr std::array<std::string_view, kGivenKinds> kStops{"", kStopsAtShards, ""};

}  // namespace shardplan::bitsandbytes
