// What ranks of one process do with memory that all of them reach: a host's, or one GPU's. One
// object a rank.
#pragma once

#include <memory>
#include <span>

#include "comm/meeting.h"
#include "memory/tensor.h"

namespace shardplan::validator {

class CommonMemory {
 public:
  virtual ~CommonMemory() = default;
  CommonMemory() = default;
  CommonMemory(const CommonMemory&) = delete;
  CommonMemory& operator=(const CommonMemory&) = delete;

  /// For another communicator of the same rank.
  virtual std::unique_ptr<CommonMemory> again() const = 0;

  // ---- On the rank's communication stream.
  virtual void copy(const Tensor& to, const Tensor& from) = 0;
  /// to = the sum of `parts` in their order, of which one may be `to` itself. Accumulated in fp32
  /// (fp64 for fp64) and rounded once.
  virtual void sum(const Tensor& to, std::span<const Tensor> parts) = 0;

  // ---- Order among ranks.
  /// What this rank has enqueued so far, on the communication stream. A later mark of the same
  /// point takes its place.
  virtual Mark mark(Point point) = 0;
  /// What this rank enqueues from now on comes after another's mark.
  virtual void wait(Mark mark) = 0;
  /// Returns when the rank's streams are empty.
  virtual void finish() = 0;
};

/// Of a host: what is enqueued is done.
std::unique_ptr<CommonMemory> host_memory();

}  // namespace shardplan::validator
