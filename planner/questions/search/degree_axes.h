// What the axes of degrees share.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "frameworks/registry.h"
#include "questions/search/axes.h"

namespace shardplan::degree_axes {

inline constexpr const char* kTensorFlag = "--tensor-degrees";
inline constexpr const char* kPipelineFlag = "--pipeline-degrees";
inline constexpr const char* kChunksFlag = "--virtual-pipelines";
inline constexpr const char* kStrategyFlag = "--frameworks/--zero-stages";
inline constexpr const char* kGpuFlag = "--gpu-counts";
inline constexpr const char* kModelFlag = "--model";

/// The model outlives the function that makes the axes.
using SharedModel = std::shared_ptr<const Model>;

/// What the base has of a degree, and `usual` where a framework that is searched can vary it.
std::vector<std::int64_t> degree_values(const Plan& base, const AxisValues& values, Degree degree,
                                        const std::vector<std::int64_t>& asked,
                                        const std::vector<std::int64_t>& usual);
std::vector<std::int64_t> divisors(std::int64_t of, std::int64_t most);

Axis axis_of(std::string name, std::string flag, const std::vector<std::int64_t>& values);

/// The first problem is with this degree: those behind it are not set yet.
bool has_problem(const Model& model, const Plan& plan, Degree degree);
AxisRule unsupported(Degree degree);
AxisRule fills_the_world();

Axis pipeline_axis(const SharedModel& model, const Plan& base, const AxisValues& values);
Axis chunks_axis(const SharedModel& model, const Plan& base, const AxisValues& values);
Axis schedule_axis(const Plan& base, const AxisValues& values,
                   const std::vector<std::string>& chunks);
Axis balance_axis(const SharedModel& model, const Plan& base, const AxisValues& values);

}  // namespace shardplan::degree_axes
