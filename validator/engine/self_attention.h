// Attention of a block, over all rows of its sequences wherever they are. Two kinds: of a rank that
// has whole sequences, and of ranks that have parts of the same ones (ring_attention.h).
#pragma once

#include <memory>

#include "engine/runtime.h"

namespace shardplan::validator {

class SelfAttention {
 public:
  virtual ~SelfAttention() = default;
  SelfAttention() = default;
  SelfAttention(const SelfAttention&) = delete;
  SelfAttention& operator=(const SelfAttention&) = delete;

  /// Allocates what the passes of a step use in turn; it stays until the caller's scope ends.
  virtual void begin_step(Arena& arena) = 0;
  /// The same of a backward pass, beside that.
  virtual void begin_backward(Arena& arena) = 0;
  /// `o` of this rank's rows, causal.
  virtual void forward(const AttentionForward& o) const = 0;
  virtual void backward(const AttentionBackward& o) const = 0;
};

/// `heads` of this rank's rows, in elements of `dtype`.
std::unique_ptr<SelfAttention> make_self_attention(const Runtime& runtime, const Heads& heads,
                                                   DType dtype);

}  // namespace shardplan::validator
