// The native engine (docs/validation.md): every tensor comes from one block of memory, so there is
// no caching allocator, and gradients, slots and workspace are kept for the whole run.
#include <algorithm>

#include "lowering/lower.h"
#include "lowering/micro_batches.h"
#include "lowering/native/layout.h"

namespace shardplan {
namespace {

constexpr std::int64_t kElements = 64;
constexpr std::int64_t kWorkspaceOfCuda = std::int64_t{32} << 20;  // cuBLASLt's; others fit in it
constexpr std::int64_t kLogitBytes = std::int64_t{512} << 20;

std::int64_t tensor(std::int64_t elements, std::int64_t bytes_each) {
  return round_up(checked_mul(elements, bytes_each), kAllocationUnit);
}

struct Native {
  Native(const Model& model, const Plan& run)
      : plan(run),
        layout(native_layout(model)),
        stage(run.framework.native.zero_stage),
        world(run.cluster.world()),
        rows(checked_mul(run.workload.micro_batch,
                         layout.decoder ? run.workload.sequence_length : 1)),
        width(size_of(run.precision.params)) {}

  const Plan& plan;
  NativeLayout layout;
  std::int64_t stage, world, rows;
  std::int64_t width;  ///< bytes of a parameter, and of everything that is computed with it

  std::int64_t parts() const { return stage == 0 ? 1 : world; }
  std::int64_t padded(const NativeUnit& u) const {
    return round_up(u.elements, kElements * parts());
  }
  std::int64_t shard(const NativeUnit& u) const { return padded(u) / parts(); }

  /// Elements of the slots that units take turns in: blocks alternate between two; embedding and
  /// head share one unless they are needed together.
  std::vector<std::int64_t> slots() const {
    std::vector<std::int64_t> sizes;
    std::int64_t index = 0;
    for (const NativeUnit& u : layout.blocks) {
      for (std::int64_t i = 0; i < std::min<std::int64_t>(u.count, 2); ++i, ++index) {
        const auto slot = static_cast<std::size_t>(index % 2);
        if (sizes.size() <= slot) sizes.push_back(0);
        sizes[slot] = std::max(sizes[slot], padded(u));
      }
    }
    if (!layout.decoder) return sizes;
    const std::int64_t first = padded(layout.embedding), last = padded(layout.head);
    if (layout.tied) {
      sizes.push_back(first);
      sizes.push_back(last);
    } else {
      sizes.push_back(std::max(first, last));
    }
    return sizes;
  }

  /// Bytes of [rows, columns], and of a row statistic.
  std::int64_t matrix(std::int64_t columns) const {
    return tensor(checked_mul(rows, columns), width);
  }
  std::int64_t statistic(std::int64_t per_row = 1) const {
    return tensor(checked_mul(rows, per_row), 4);
  }

  /// What a block makes again under selective checkpointing, and what it keeps beside it.
  std::int64_t renewed() const {
    const NativeBlock& k = layout.block;
    return 2 * matrix(k.hidden) + matrix(k.inner) + (k.head_norms ? matrix(k.packed) : 0);
  }
  std::int64_t products() const {
    const NativeBlock& k = layout.block;
    std::int64_t sum = (k.layer_norm ? 4 : 2) * statistic() + matrix(k.packed) +
                       statistic(k.query_heads) + matrix(k.query_width) + matrix(k.hidden) +
                       matrix(k.up);
    if (k.head_norms) sum += statistic(k.query_heads + k.key_value_heads);
    return sum;
  }

  std::int64_t logit_rows() const {
    const std::int64_t row = checked_mul(layout.padded_vocabulary, width);
    const std::int64_t chunks = ceil_div(checked_mul(rows, row), kLogitBytes);
    return std::min(rows, round_up(ceil_div(rows, chunks), 128));
  }
};

void add_residents(ProgramBuilder& b, const Native& n) {
  const Precision& precision = n.plan.precision;
  const std::int64_t states = size_of(precision.optimizer_states);
  for (const NativeUnit& u : n.layout.units()) {
    b.resident(Category::parameters, tensor(n.stage < 3 ? n.padded(u) : n.shard(u), n.width),
               u.count);
    b.resident(Category::gradients, tensor(n.stage < 2 ? n.padded(u) : n.shard(u), n.width),
               u.count);
    if (precision.master)
      b.resident(Category::master_parameters, tensor(n.shard(u), size_of(*precision.master)),
                 u.count);
    b.resident(Category::optimizer_states, tensor(n.shard(u), states), 2 * u.count);
  }
  for (const std::int64_t slot : n.slots()) {
    if (n.stage == 3) b.resident(Category::gathered_parameters, tensor(slot, n.width));
    if (n.stage >= 2) b.resident(Category::communication_buffers, tensor(slot, n.width));
  }
  if (n.plan.framework.native.device == NativeDevice::cuda)
    b.resident(Category::workspace, kWorkspaceOfCuda);
  b.resident(Category::logits_and_loss, kAllocationUnit);  // the loss
  b.resident(Category::other, kAllocationUnit);            // the gradients' norm
  b.resident(Category::other, tensor(n.rows, 4));          // targets
  if (!n.layout.decoder) {
    b.resident(Category::other, tensor(checked_mul(n.rows, n.layout.widths.front()), 4));
    return;
  }
  b.resident(Category::other, tensor(n.rows, 4));  // tokens
  if (n.layout.rotary)
    b.resident(Category::other,
               tensor(checked_mul(n.plan.workload.sequence_length, n.layout.rotary_dim), 4));
}

/// At stage 3 every unit is gathered for the forward pass, and blocks but the last two for the
/// backward pass; a tied embedding stays from one to the next.
void emit_gathers(ProgramBuilder& b, const Native& n, bool backward) {
  if (n.stage < 3) return;
  for (const NativeUnit& u : n.layout.units()) {
    const std::int64_t times = backward ? std::max<std::int64_t>(0, u.count - 2) : u.count;
    if (times > 0)
      b.collective(Collective::all_gather, checked_mul(n.padded(u) * n.width, times),
                   "parameter all-gather", times);
  }
}

void emit_reductions(ProgramBuilder& b, const Native& n, bool last) {
  if (n.stage < 2 && !last) return;
  const Collective kind = n.stage == 0 ? Collective::all_reduce : Collective::reduce_scatter;
  const std::string_view what =
      n.stage == 0 ? "gradient all-reduce" : "gradient reduce-scatter";
  for (const NativeUnit& u : n.layout.units())
    b.collective(kind, checked_mul(n.padded(u) * n.width, u.count), what, u.count);
}

/// Multiply-adds of a token: in the parameters' matrices, and attention's causal half.
double forward_flops(const Native& n) {
  double elements = 0;
  for (const NativeUnit& u : n.layout.blocks)
    elements += static_cast<double>(u.elements) * static_cast<double>(u.count);
  const double rows = static_cast<double>(n.rows);
  double flops = 2 * elements * rows;
  if (!n.layout.decoder) return flops;
  flops += 2 * rows * static_cast<double>(n.layout.padded_vocabulary * n.layout.block.hidden);
  const double scores =
      rows * static_cast<double>(n.plan.workload.sequence_length * n.layout.block.query_width);
  return flops + 2 * scores * static_cast<double>(n.layout.blocks.front().count);
}

void emit_decoder(ProgramBuilder& b, const Native& n, bool last) {
  const NativeBlock& k = n.layout.block;
  const std::int64_t layers = n.layout.blocks.front().count;
  const Checkpointing keep = n.plan.checkpointing;
  const std::int64_t everything = n.products() + n.renewed();

  b.begin_phase(Phase::forward);
  emit_gathers(b, n, false);
  // The residual stream before each block and after the last; the head's norm; the branch.
  const std::int64_t stream = (layers + 3) * n.matrix(k.hidden) +
                              (k.layer_norm ? 2 : 1) * n.statistic();
  b.alloc(Category::activations, stream);
  b.alloc(Category::logits_and_loss, n.statistic());
  std::int64_t kept = 0;
  if (keep == Checkpointing::none) kept = layers * everything;
  if (keep == Checkpointing::selective) kept = layers * n.products() + n.renewed();
  b.alloc(Category::activations, kept);
  if (keep == Checkpointing::full) b.transient(Category::activations, everything);
  b.transient(Category::logits_and_loss,
              tensor(checked_mul(n.logit_rows(), n.layout.padded_vocabulary), n.width));
  const double flops = forward_flops(n);
  b.compute(flops, 0, layers);
  b.end_phase(Phase::forward);

  b.begin_phase(Phase::backward);
  emit_gathers(b, n, true);
  const std::int64_t scratch = n.matrix(k.query_width) + n.matrix(k.packed);
  const std::int64_t again =
      keep == Checkpointing::full ? everything + n.matrix(k.hidden) : 0;
  b.transient(Category::activations, scratch + again);
  b.compute(2 * flops + (again > 0 ? flops : 0), 0, layers);
  emit_reductions(b, n, last);
  b.free(Category::activations, stream);
  b.free(Category::logits_and_loss, n.statistic());
  b.free(Category::activations, kept);
  b.end_phase(Phase::backward);
}

/// A perceptron keeps the input and the sum of every layer; the last sums are the logits.
void emit_perceptron(ProgramBuilder& b, const Native& n, bool last) {
  std::int64_t activations = 0;
  for (std::size_t i = 0; i + 1 < n.layout.widths.size(); ++i) {
    activations += n.matrix(n.layout.widths[i]);
    if (i > 0) activations += n.matrix(n.layout.widths[i]);
  }
  const std::int64_t logits = n.matrix(n.layout.widths.back()) + n.statistic();
  b.begin_phase(Phase::forward);
  emit_gathers(b, n, false);
  b.alloc(Category::activations, activations);
  b.alloc(Category::logits_and_loss, logits);
  b.compute(forward_flops(n), 0, 1);
  b.end_phase(Phase::forward);
  b.begin_phase(Phase::backward);
  b.compute(2 * forward_flops(n), 0, 1);
  emit_reductions(b, n, last);
  b.free(Category::activations, activations);
  b.free(Category::logits_and_loss, logits);
  b.end_phase(Phase::backward);
}

}  // namespace

Program lower_native(const Model& model, const Plan& plan) {
  Program program;
  program.one_block = true;
  ProgramBuilder b(program);
  const Native n(model, plan);
  add_residents(b, n);
  program.model_bytes = total_bytes(program.resident);
  emit_micro_batches(b, plan.workload.gradient_accumulation, [&](bool last) {
    n.layout.decoder ? emit_decoder(b, n, last) : emit_perceptron(b, n, last);
  });
  b.begin_phase(Phase::step);
  b.compute(0, 2.0 * static_cast<double>(program.model_bytes), 1);
  if (n.stage == 1 || n.stage == 2)
    for (const NativeUnit& u : n.layout.units())
      b.collective(Collective::all_gather, checked_mul(n.padded(u) * n.width, u.count),
                   "parameter all-gather", u.count);
  b.end_phase(Phase::step);
  return program;
}

}  // namespace shardplan
