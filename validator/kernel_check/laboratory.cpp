#include "kernel_check/laboratory.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "kernel_check/elements.h"

namespace shardplan::validator {
namespace {

/// A few roundings of the result's own type, and sums in fp32.
double tolerance_of(DType dtype) {
  switch (dtype) {
    case DType::bf16:
      return 6e-3;
    case DType::f16:
      return 8e-4;
    default:
      return 5e-6;
  }
}

struct Distance {
  double relative = 0;
  double largest = 0;
};

Distance distance(const std::vector<double>& values, const std::vector<double>& reference) {
  double squares = 0;
  double reference_squares = 0;
  double largest = 0;
  double reference_largest = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double difference = std::abs(values[i] - reference[i]);
    if (std::isnan(difference)) return {difference, difference};
    squares += difference * difference;
    reference_squares += reference[i] * reference[i];
    largest = std::max(largest, difference);
    reference_largest = std::max(reference_largest, std::abs(reference[i]));
  }
  constexpr double kTiny = std::numeric_limits<double>::min();
  return {std::sqrt(squares) / std::max(std::sqrt(reference_squares), kTiny),
          largest / std::max(reference_largest, kTiny)};
}

Tensor with_workspace(Backend& backend, Arena& arena, const StepShapes& largest) {
  const std::int64_t bytes = std::max<std::int64_t>(backend.workspace_bytes(largest), 1);
  const Tensor workspace =
      arena.allocate("workspace", Category::workspace, DType::i8, Shape{bytes});
  backend.use_workspace(workspace);
  return workspace;
}

}  // namespace

Laboratory::Laboratory(Backend& device, Backend& reference, std::int64_t bytes,
                       const StepShapes& largest)
    : device_(device),
      reference_(reference),
      device_arena_(device.allocate(bytes), bytes),
      reference_arena_(reference.allocate(bytes), bytes) {
  with_workspace(device_, device_arena_, largest);
  with_workspace(reference_, reference_arena_, largest);
}

void Laboratory::begin(std::string operation, std::string shape, DType dtype) {
  operation_ = std::move(operation);
  shape_ = std::move(shape);
  dtype_ = dtype;
  initial_.clear();
  device_scope_.reset();
  reference_scope_.reset();
  device_scope_ = std::make_unique<Arena::Scope>(device_arena_);
  reference_scope_ = std::make_unique<Arena::Scope>(reference_arena_);
}

std::vector<double> Laboratory::draws(std::int64_t count, double mean, double stddev) {
  std::normal_distribution<double> normal(mean, stddev);
  std::vector<double> values(static_cast<std::size_t>(count));
  for (double& value : values) value = normal(random_);
  return values;
}

Pair Laboratory::place(Shape shape, DType dtype, DType exact, const std::vector<double>& values) {
  Initial initial;
  initial.pair = {device_arena_.allocate("operand", Category::other, dtype, shape),
                  reference_arena_.allocate("operand", Category::other, exact, shape)};
  initial.bytes = encode(values, dtype);
  initial.values = decode(initial.bytes, dtype);  // both sides start from the rounded numbers
  initial_.push_back(std::move(initial));
  return initial_.back().pair;
}

Pair Laboratory::normal(Shape shape, double stddev) {
  return typed(shape, dtype_, stddev);
}

Pair Laboratory::typed(Shape shape, DType dtype, double stddev) {
  return place(shape, dtype, DType::f64, draws(shape.numel(), 0.0, stddev));
}

Pair Laboratory::ones_and_noise(Shape shape) {
  return place(shape, dtype_, DType::f64, draws(shape.numel(), 1.0, 0.2));
}

Pair Laboratory::positive(Shape shape, DType dtype) {
  std::vector<double> values = draws(shape.numel(), 0.0, 1e-3);
  for (double& value : values) value *= value;
  return place(shape, dtype, DType::f64, values);
}

Pair Laboratory::master(Shape shape) {
  return place(shape, DType::f32, DType::f32, draws(shape.numel(), 0.0, 1.0));
}

Pair Laboratory::statistic(Shape shape) {
  const double poison = std::numeric_limits<double>::quiet_NaN();
  return place(shape, DType::f32, DType::f64,
               std::vector<double>(static_cast<std::size_t>(shape.numel()), poison));
}

Pair Laboratory::scalar(double value) {
  return place(Shape{1}, DType::f32, DType::f64, {value});
}

Pair Laboratory::integers(const std::vector<std::int32_t>& values) {
  return place(Shape{static_cast<std::int64_t>(values.size())}, DType::i32, DType::i32,
               std::vector<double>(values.begin(), values.end()));
}

Pair Laboratory::output(Shape shape) {
  const double poison = std::numeric_limits<double>::quiet_NaN();
  return place(shape, dtype_, DType::f64,
               std::vector<double>(static_cast<std::size_t>(shape.numel()), poison));
}

Pair Laboratory::narrow(Shape shape, DType dtype) {
  const double poison = std::numeric_limits<double>::quiet_NaN();
  return place(shape, dtype, dtype,
               std::vector<double>(static_cast<std::size_t>(shape.numel()), poison));
}

Pair Laboratory::scales(Shape shape) {
  const double poison = std::numeric_limits<double>::quiet_NaN();
  return place(shape, DType::f32, DType::f32,
               std::vector<double>(static_cast<std::size_t>(shape.numel()), poison));
}

std::int32_t Laboratory::random_below(std::int32_t limit) {
  return std::uniform_int_distribution<std::int32_t>(0, limit - 1)(random_);
}

void Laboratory::reset() {
  for (const Initial& initial : initial_) {
    device_.upload(initial.pair.device, initial.bytes);
    reference_.upload(initial.pair.reference, encode(initial.values, initial.pair.reference.dtype));
  }
}

std::vector<std::byte> Laboratory::device_bytes(const Tensor& x) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(x.bytes()));
  device_.download(bytes, x);
  return bytes;
}

void Laboratory::run(const Operation& operation, const std::vector<Result>& results,
                     double strictness) {
  std::vector<std::vector<std::byte>> first;
  reset();
  operation(device_, Side(true));
  for (const Result& result : results) first.push_back(device_bytes(result.pair.device));
  reset();
  operation(device_, Side(true));
  operation(reference_, Side(false));
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Pair& pair = results[i].pair;
    std::vector<std::byte> expected(static_cast<std::size_t>(pair.reference.bytes()));
    reference_.download(expected, pair.reference);
    const Distance apart =
        distance(decode(first[i], pair.device.dtype), decode(expected, pair.reference.dtype));
    findings_.push_back({.operation = operation_ + ": " + results[i].name,
                         .shape = shape_,
                         .dtype = dtype_,
                         .relative_error = apart.relative,
                         .largest_error = apart.largest,
                         .tolerance = tolerance_of(dtype_) * strictness * results[i].slack,
                         .repeats = first[i] == device_bytes(pair.device)});
  }
}

}  // namespace shardplan::validator
