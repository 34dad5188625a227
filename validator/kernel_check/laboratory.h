// Runs one operation on two back ends, the device in the type under test and the host in fp64, from
// the same inputs, and measures how far apart the results are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "device/backend.h"
#include "memory/arena.h"

namespace shardplan::validator {

/// The same tensor on both sides.
struct Pair {
  Tensor device;
  Tensor reference;
};

/// Picks a side's tensor of a pair.
class Side {
 public:
  explicit Side(bool device) : device_(device) {}
  Tensor operator()(const Pair& pair) const { return device_ ? pair.device : pair.reference; }
  bool is_device() const { return device_; }

 private:
  bool device_;
};

using Operation = std::function<void(Backend&, const Side&)>;

struct Finding {
  std::string operation;  ///< "norm backward, rms: dx"
  std::string shape;      ///< "512 × 4096"
  DType dtype = DType::f32;
  double relative_error = 0;  ///< ‖device − reference‖ / ‖reference‖
  double largest_error = 0;   ///< max |device − reference| / max |reference|
  double tolerance = 0;       ///< of the relative error
  bool repeats = false;       ///< a second run gave the same bits
  bool passed() const { return relative_error <= tolerance; }  // false for NaN
};

class Laboratory {
 public:
  /// Both back ends with an arena each of `bytes` and a workspace for `largest`.
  Laboratory(Backend& device, Backend& reference, std::int64_t bytes, const StepShapes& largest);

  /// Begins a case: what the last one allocated is gone.
  void begin(std::string operation, std::string shape, DType dtype);

  Pair normal(Shape shape, double stddev = 1.0);  ///< in the type under test
  Pair ones_and_noise(Shape shape);               ///< as norm weights are: about 1
  Pair positive(Shape shape, DType dtype);        ///< as second moments are
  Pair master(Shape shape);                       ///< fp32 on both sides
  Pair statistic(Shape shape);                    ///< an output in fp32 on the device
  Pair scalar(double value);                      ///< fp32 on the device
  Pair integers(const std::vector<std::int32_t>& values);
  Pair output(Shape shape);                             ///< poisoned, in the type under test
  Pair typed(Shape shape, DType dtype, double stddev);  ///< normal, in a type of its own
  Pair narrow(Shape shape, DType dtype);                ///< poisoned, of 8 bits on both sides
  Pair scales(Shape shape);                             ///< poisoned, fp32 on both sides

  struct Result {
    std::string name;
    Pair pair;
    double slack = 1;  ///< times the tolerance of the others
  };
  /// Runs the operation on both sides, on the device twice, and notes a finding for each result.
  /// `strictness` scales the tolerance of the element type.
  void run(const Operation& operation, const std::vector<Result>& results, double strictness = 1.0);

  const std::vector<Finding>& findings() const { return findings_; }
  Backend& device() { return device_; }
  std::int32_t random_below(std::int32_t limit);

 private:
  struct Initial {
    Pair pair;
    std::vector<std::byte> bytes;  ///< of the device's side
    std::vector<double> values;
  };

  Pair place(Shape shape, DType dtype, DType exact, const std::vector<double>& values);
  std::vector<double> draws(std::int64_t count, double mean, double stddev);
  void reset();
  std::vector<std::byte> device_bytes(const Tensor& x);

  Backend& device_;
  Backend& reference_;
  Arena device_arena_;
  Arena reference_arena_;
  std::unique_ptr<Arena::Scope> device_scope_;
  std::unique_ptr<Arena::Scope> reference_scope_;
  std::mt19937_64 random_{20240817};
  std::string operation_;
  std::string shape_;
  DType dtype_ = DType::f32;
  std::vector<Initial> initial_;
  std::vector<Finding> findings_;
};

}  // namespace shardplan::validator
