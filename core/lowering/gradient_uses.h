// Gradients of weights that several segments use: autograd adds them up before the parameter gets
// its own.
#pragma once

#include <cstdint>
#include <vector>

#include "lowering/segments.h"
#include "model/model.h"
#include "plan/plan.h"

namespace shardplan {

/// How many gradients each parameter receives in one backward pass over `repeats` (more than one
/// when tied). Those of a repeated segment are of one layer.
std::vector<std::int32_t> gradient_uses(const Model& model, const ModelRun& run,
                                        const std::vector<SegmentRepeat>& repeats);

/// Whether the graph of a compiled model breaks inside of every layer: at functions of the model's
/// own, or at hooks around modules.
bool breaks_in_layers(const Model& model, const Plan& plan);

/// Whether a compiled model's head and loss are a graph of their own, which is compiled when the
/// layers before it have run. `told_leaf`: the hook that tells frozen embeddings to need a gradient
/// breaks the graph (torch/_dynamo: a requires_grad_ of what the graph has made), which goes on
/// behind it; the caller, with the head, is another. So it is where the graph breaks within layers.
bool ends_apart(const Model& model, const Plan& plan, bool told_leaf);

/// Whether autograd gets all gradients of a backward pass when that is over: the model is one
/// compiled graph, which nothing breaks or cuts.
bool gradients_at_once(const Model& model, const Plan& plan);

/// Which of a weight's gradients arrives. All but the last wait in an input buffer of autograd for
/// the others, which are added in place (torch/csrc/autograd/input_buffer.cpp); then the
/// parameter's hooks run, once.
enum class GradientUse : std::uint8_t { only, first, between, last };

constexpr bool waits(GradientUse use) {
  return use == GradientUse::first || use == GradientUse::between;
}

/// The memory of one that waits: the first stays until the last is there.
void emit_waiting(ProgramBuilder& b, GradientUse use, std::int64_t bytes,
                  Stream pool = Stream::compute);

/// Counts the gradients of a weight through backward passes over `repeats`.
class GradientUses {
 public:
  GradientUses(const Model& model, const ModelRun& run, const std::vector<SegmentRepeat>& repeats)
      : all_(gradient_uses(model, run, repeats)),
        left_(all_),
        arrived_(all_.size()),
        pool_(run.pool),
        table_pool_(model.facts.breaks_between_layers ? Stream::compute : run.pool) {}

  /// The next one of a parameter. After the last a new pass begins.
  GradientUse next(ParameterId id);

  /// The memory of the next one, `bytes` long. `adds`: the parameter's gradient is added to, or
  /// copied into, memory that exists; else the first one becomes the parameter's.
  /// Passes that are CUDA graphs leave gradients in their pool; autograd, which may not write over
  /// those, adds them up in memory of its own. Where the model's own function runs eagerly between
  /// graphs of layers, the gradient of its table, the last of a tied one, is beside the pool too.
  /// What is added stays until `added` or `summed`.
  GradientUse arrive(ProgramBuilder& b, ParameterId id, std::int64_t bytes, bool adds);
  /// The parameter has taken what arrived.
  void added(ProgramBuilder& b, ParameterId id, std::int64_t bytes);
  /// The same where a sum in the place that was freed last has all that arrived.
  void summed(ProgramBuilder& b, ParameterId id, std::int64_t bytes);

  /// Bytes that `arrive` has put beside the pool of a step's graphs.
  std::int64_t beside_graphs() const { return beside_graphs_; }

 private:
  std::vector<std::int32_t> all_, left_;  ///< by parameter
  struct Arrived {
    std::int64_t count = 0;  ///< tensors of one gradient
    bool adds = false;       ///< to the gradient that the parameter has
  };
  std::vector<Arrived> arrived_;  ///< by parameter
  Stream pool_;                   ///< that passes allocate in
  Stream table_pool_;             ///< of a table's gradient, which eager code may make
  std::int64_t beside_graphs_ = 0;
};

}  // namespace shardplan
