// What a step asks of the cores beside its device, where states are kept in the host's memory. Two
// implementations: kernels/host/crew with many threads, and the dry run's.
//
// All operands are in the host's memory. A call returns when it is done. Results do not depend on
// how many threads there are, nor on which instructions they use.
#pragma once

#include <string>

#include "device/operands.h"

namespace shardplan::validator {

class HostCompute {
 public:
  virtual ~HostCompute() = default;
  HostCompute() = default;
  HostCompute(const HostCompute&) = delete;
  HostCompute& operator=(const HostCompute&) = delete;

  /// "AVX-512, 16 threads"
  virtual std::string description() const = 0;
  /// Whoever writes a page first decides where it lies: each thread its own part.
  virtual void zero(const Tensor& x) = 0;
  virtual void cast(const Tensor& to, const Tensor& from) = 0;
  virtual void add(const Tensor& to, const Tensor& x) = 0;  ///< to += x
  /// Σ x², in fp64.
  virtual double squared_norm(const Tensor& x) = 0;
  virtual void adamw(const AdamW& o) = 0;
};

}  // namespace shardplan::validator
