#include "program/tape/tiles.h"

#include <map>
#include <utility>

#include "base/checked.h"
#include "program/tape/kernels.h"
#include "program/tape/tile_sums.h"

namespace shardplan::tape {
namespace {

/// torch.chunk: parts of the same length, and a shorter last one.
struct Chunks {
  std::int64_t count = 1, each = 0, last = 0;
  Chunks(std::int64_t length, std::int64_t asked) : each(ceil_div(length, asked)) {
    count = ceil_div(length, each);
    last = length - each * (count - 1);
  }
  std::int64_t length(std::int64_t number) const { return number + 1 < count ? each : last; }
};

Sizes part_sizes(const Parts& p, std::int64_t batch, std::int64_t sequence) {
  Sizes sizes = p.view.sizes();
  sizes.batch = batch;
  sizes.sequence = sequence;
  return sizes;
}

/// Writes a pass over one part into the run around it.
class Splice {
 public:
  Splice(Parts& p, TapeRun run) : p_(p), run_(std::move(run)) {}

  const TapeRun& run() const { return run_; }

  template <typename Arrives>
  void write(const std::vector<TapeEvent>& events, const std::vector<Kernel>& kernels, bool again,
             Arrives&& arrives) {
    for (const TapeEvent& e : events) {
      switch (e.kind) {
        case TapeEvent::Kind::alloc:
          at_[e.id] = p_.storages.allocate(e.bytes, e.category, e.pool);
          break;
        case TapeEvent::Kind::free:
          p_.storages.unref(take(e.id));
          break;
        case TapeEvent::Kind::compute:
          for (std::int64_t k = e.id; k < e.id + e.bytes; ++k) start(kernels, k, again);
          break;
        case TapeEvent::Kind::gradient:
          arrives(e.id);
          break;
        case TapeEvent::Kind::added:
        case TapeEvent::Kind::summed:
          break;  // the part's own: what it gives waits for the other parts'
        default:  // modules are fetched and released; nothing else is in such a pass
          p_.writer.emit(e.kind, e.category, e.id, e.bytes, e.pool);
      }
    }
  }

  /// The storage in a slot, with the pass's reference; kExternal: none of the pass's own.
  StorageId take(std::int32_t slot) {
    const auto found = at_.find(slot);
    if (found == at_.end()) return kExternal;
    return std::exchange(found->second, kExternal);
  }
  /// What goes when Python lets go of the part's result, with its graph.
  void drop_result() {
    p_.storages.unref(take(run_.output_slot));
    for (const TapeEvent& e : run_.held) p_.storages.unref(take(e.id));
  }

 private:
  void start(const std::vector<Kernel>& kernels, std::int64_t k, bool again) {
    const Kernel& kernel = kernels[static_cast<std::size_t>(k)];
    if (again)
      p_.writer.launch_again(kernel);
    else
      p_.writer.launch(kernel);
  }

  Parts& p_;
  TapeRun run_;
  std::map<std::int32_t, StorageId> at_;  ///< by slot of the pass
};

void no_gradient(ParameterId) {}

TapeOptions part_options(const Parts& p, bool input_needs_grad) {
  TapeOptions options = p.options;
  options.tiles = {};
  options.saved_input = {};
  options.kept = KeptResults::none;
  options.input_needs_grad = input_needs_grad;
  options.last_segment = true;
  return options;
}

Kernel sweep(const Parts& p, ValueId value, DType type, int times) {
  return memory_kernel(KernelKind::elementwise, Issue::python, type,
                       times * p.view.moved(value, type), p.view.count_of(value));
}

/// Copies that all parts read (ForwardPass::cast_weight).
void cast_weights(Parts& p, const TiledPart& part) {
  const Regime& regime = p.view.regime();
  for (std::size_t i = part.begin; i < part.end; ++i) {
    const Op& op = p.graph().ops()[i];
    if (op.kind != OpKind::linear || regime.zero3_linear || !p.view.trains(op.weight)) continue;
    if (!p.view.casts_weight(op) || p.casts.find(op.weight) != kExternal) continue;
    const Parameter& w = p.view.parameter(op.weight);
    p.writer.launch(weight_cast_kernel(w, p.view.parameter_type(op.weight), regime.compute));
    p.casts.add(op.weight,
                p.storages.allocate(p.view.bytes_of(w, regime.compute), Category::other));
  }
}

/// Of a part that is computed again: the types of the parameters.
Regime without_autocast(const Regime& regime) {
  Regime plain = regime;
  plain.base = regime.widened();
  plain.compute = regime.params;
  plain.wrapped = false;
  return plain;
}

bool trains(const Parts& p, const TiledPart& part) {
  for (std::size_t i = part.begin; i < part.end; ++i)
    if (p.view.trains(p.graph().ops()[i].weight) || p.view.trains(p.graph().ops()[i].bias))
      return true;
  return false;
}

/// axolotl's cuts along the sequence in its backward pass too; the others put samples behind each
/// other first.
bool cuts_samples(const Parts& p) {
  return p.options.tiles.sums == TileSums::copies;
}

}  // namespace

void tiled_forward(Parts& p, const TiledPart& part) {
  const ValueState in = p.view.state(part.in);
  const Op& last = p.graph().ops()[part.end - 1];
  ValueState& out = p.view.state(last.out);
  out.needs_grad = in.needs_grad || trains(p, part);
  cast_weights(p, part);
  const Sizes& all = p.view.sizes();
  const Chunks chunks(all.sequence, p.options.tiles.count);
  TapeOptions options = part_options(p, in.needs_grad);
  options.casts_given = true;
  std::vector<StorageId> results;
  for (std::int64_t k = 0; k < chunks.count; ++k) {
    Splice pass(p, run_tape(p.view.model(), all.batch > 1 ? part.apart : part.whole,
                            p.view.regime(), part_sizes(p, all.batch, chunks.length(k)), in.dtype,
                            TapeMode::discard, options));
    pass.write(pass.run().forward, pass.run().forward_kernels, false, no_gradient);
    out.dtype = pass.run().output_dtype;
    results.push_back(pass.take(pass.run().output_slot));
  }
  out.storage =
      p.storages.allocate(p.view.bytes_of(last.out, out.dtype), p.view.category_of(last.out));
  p.writer.launch(sweep(p, last.out, out.dtype, 2));
  for (const StorageId id : results) p.storages.unref(id);
  if (p.keeps() && out.needs_grad) p.saved.save(part.end - 1, in.storage);
}

void tiled_backward(Parts& p, const TiledPart& part) {
  const ValueState in = p.view.state(part.in);
  const Op& last = p.graph().ops()[part.end - 1];
  const DType incoming = p.view.state(last.out).dtype;
  const Sizes& all = p.view.sizes();
  const bool samples = cuts_samples(p);
  const Chunks chunks(samples ? all.sequence : checked_mul(all.batch, all.sequence),
                      p.options.tiles.count);
  const StorageId gradient = p.gradients.allocate_like(part.in, in.dtype);
  p.writer.launch(sweep(p, part.in, in.dtype, 1));
  TileGradients weights(p, part, chunks.count);
  const Regime regime = without_autocast(p.view.regime());
  const TapeOptions options = part_options(p, in.needs_grad);
  std::optional<Splice> before;
  for (std::int64_t k = 0; k < chunks.count; ++k) {
    const Sizes sizes = part_sizes(p, samples ? all.batch : 1, chunks.length(k));
    Splice pass(p, run_tape(p.view.model(), samples && all.batch > 1 ? part.apart : part.whole,
                            regime, sizes, in.dtype, TapeMode::keep, options));
    const TapeRun& run = pass.run();
    pass.write(run.forward, run.forward_kernels, true, no_gradient);
    p.run.outliers_at_most = std::max(p.run.outliers_at_most, run.outliers_at_most);
    if (before) before->drop_result();  // its name is taken
    // A cast gradient is its caller's until the part's backward pass is over (torch/csrc/autograd/
    // python_engine.cpp, THPEngine_run_backward).
    const StorageId cast =
        run.output_dtype != incoming
            ? p.storages.allocate(checked_mul(elements(p.view.extent_of(last.out), sizes),
                                              size_of(run.output_dtype)),
                                  Category::activations)
            : kExternal;
    pass.write(run.backward, run.backward_kernels, false,
               [&](ParameterId id) { weights.arrive(id, k); });
    p.storages.unref(cast);
    if (in.needs_grad) {
      Kernel add = sweep(p, part.in, in.dtype, 3);
      add.bytes /= static_cast<double>(chunks.count);
      add.elements /= static_cast<double>(chunks.count);
      p.writer.launch(add);
    }
    p.storages.unref(pass.take(run.input_gradient_slot));
    weights.end_part();
    before.emplace(std::move(pass));
  }
  weights.end();
  before->drop_result();
  p.gradients.give(part.in, gradient);
}

}  // namespace shardplan::tape
