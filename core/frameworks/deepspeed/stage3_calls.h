// What stage 3's Python does beside a network, in calls of Issue::engine. How its parts compare is
// timed on a CPU, beside a Llama's block in turns (tests/accuracy/measure/host_costs/time_zero3.py,
// DeepSpeed 0.19.6; docs/explanation/time.md): there a call is 16 µs. How long one takes where
// kernels are started is fitted to steps.
#pragma once

#include <cstdint>

namespace shardplan {

/// A module that holds parameters, with its share of those that hold none, in one pass: 144 µs of
/// hooks each, and of the 13 modules of a Llama's block 9 hold parameters.
inline constexpr std::int32_t kModuleCalls = 13;
/// A tensor that is gathered and let go: 48 µs.
inline constexpr std::int32_t kTensorCalls = 3;
/// A gather, of one tensor or of a bucket of them: 128 µs.
inline constexpr std::int32_t kGatherCalls = 8;
/// A gradient's way into the bucket: 32 µs.
inline constexpr std::int32_t kGradientCalls = 2;
/// The bucket, put together, reduced and taken apart: 160 µs.
inline constexpr std::int32_t kFlushCalls = 10;

}  // namespace shardplan
