// A network as the trainer drives it. Two implementations: decoder.h and perceptron.h.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/gradients.h"
#include "engine/pipeline/schedule.h"
#include "engine/runtime.h"
#include "engine/weights.h"
#include "model/adapter_layout.h"

namespace shardplan::validator {

/// What each block keeps for the backward pass.
enum class Keep : std::uint8_t {
  everything,
  products,  ///< what matrix products and attention return; norms and activations are done again
  inputs,    ///< its input only; the whole block is done again
};

/// Products of a block that are done again under Keep::products all the same: each n-th of its
/// matrices, in the order in which it computes with them. What attention returns is kept.
struct ProductsAgain {
  std::int64_t every = 0;  ///< n; 0: all are kept
  bool has(Linear l) const { return every > 0 && (static_cast<std::int64_t>(l) + 1) % every == 0; }
};

/// One micro-batch of one rank.
struct Batch {
  std::vector<std::int32_t> tokens;   ///< [rows]; empty for a perceptron
  std::vector<float> inputs;          ///< [rows, inputs]; perceptron only
  std::vector<std::int32_t> targets;  ///< [rows]
};

struct MicroBatch {
  const Batch& batch;        ///< empty for a stage that is neither first nor last
  bool first = true;         ///< of its step: losses and gradients are overwritten
  float gradient_scale = 1;  ///< of a token's loss: loss scale / tokens of the step on all ranks
};

class Network {
 public:
  virtual ~Network() = default;
  Network() = default;
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  virtual const std::vector<Unit>& units() const = 0;
  /// Whether the head's weight is the embedding's.
  virtual bool tied() const = 0;
  virtual StepShapes shapes() const = 0;
  /// Tokens (samples) of a micro-batch.
  virtual std::int64_t rows() const = 0;
  /// Allocates what is kept for the run beside the parameters: token ids, rotary tables. `slots`:
  /// micro-batches that are on their way at once.
  virtual void prepare(Runtime& runtime, int slots) = 0;
  /// Allocates what the passes of a step keep; it stays until the caller's scope ends.
  virtual void begin_step(Runtime& runtime) = 0;
  /// A chunk of layers. The last one goes up to the loss, whose sum over the rows goes to `loss`
  /// [1], and back through the head.
  virtual void forward(Runtime& runtime, Weights& weights, Gradients& gradients, const Pass& pass,
                       const MicroBatch& micro, const Tensor& loss) = 0;
  virtual void backward(Runtime& runtime, Weights& weights, Gradients& gradients,
                        const Pass& pass) = 0;
  /// [1]: copies of rows that experts had no room for in this step; absent if none is ever dropped.
  virtual Tensor dropped() const { return {}; }
  /// Experts of a layer that got no row in this step, in the mean over layers and micro-batches.
  virtual double idle_experts() const { return 0; }
  /// As many elements as the largest matrix that is kept in 4 bits; absent if none is.
  virtual Tensor widened() const { return {}; }
  /// What a pass is given by another stage, and what it makes for one.
  virtual Tensor given(const Pass& pass) const = 0;
  virtual Tensor made(const Pass& pass) const = 0;
};

}  // namespace shardplan::validator
