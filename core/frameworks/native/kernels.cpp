#include "frameworks/native/kernels.h"

#include <algorithm>
#include <utility>

#include "lowering/optimizer_kernels.h"

namespace shardplan {
namespace {

/// The engine's host starts kernels without Python: as cheap as items of a list.
Kernel started(const Native& n, KernelKind kind) {
  Kernel k;
  k.kind = kind;
  k.issue = Issue::listed;
  k.type = n.plan.precision.params;
  return k;
}

Kernel product(const Native& n, std::int64_t rows, std::int64_t outputs, std::int64_t inner) {
  Kernel k = started(n, KernelKind::product);
  k.m = rows;
  k.n = outputs;
  k.k = inner;
  k.elements = static_cast<double>(rows) * static_cast<double>(outputs);
  k.bytes = static_cast<double>(n.width) *
            (k.elements + static_cast<double>(inner) * static_cast<double>(rows + outputs));
  return k;
}

/// Reads and writes `columns` of each of `rows` in all, and writes `written` of them.
Kernel some_rows(const Native& n, KernelKind kind, std::int64_t rows, std::int64_t columns,
                 std::int64_t written) {
  Kernel k = started(n, kind);
  k.bytes = static_cast<double>(rows) * static_cast<double>(columns * n.width);
  k.elements = static_cast<double>(rows) * static_cast<double>(written);
  return k;
}
Kernel rows_of(const Native& n, KernelKind kind, std::int64_t columns, std::int64_t written) {
  return some_rows(n, kind, n.rows, columns, written);
}

Kernel attention(const Native& n, KernelKind kind) {
  const Workload& w = n.plan.workload;
  const NativeBlock& b = n.layout.block;
  Kernel k = started(n, kind);
  k.causal = true;
  k.by_rows = !n.cudnn_attention();
  k.m = k.n = w.sequence_length;
  k.k = n.layout.head_dim;
  k.batch = w.micro_batch * b.query_heads;
  k.bytes = static_cast<double>(n.rows) * static_cast<double>((b.packed + b.query_width) * n.width);
  k.elements = static_cast<double>(n.rows) * static_cast<double>(b.query_width);
  return k;
}

Kernel norm(const Native& n, std::int64_t passes) {
  const std::int64_t h = n.layout.block.hidden;
  return some_rows(n, KernelKind::layer_norm, n.part(), passes * h, h);
}
Kernel norm_backward(const Native& n) {
  const std::int64_t h = n.layout.block.hidden;
  return some_rows(n, KernelKind::layer_norm_backward, n.part(), 4 * h, h);
}

/// As many products as the rank has experts, each of its part of the rows, and what they move.
Kernel expert_product(const Native& n, std::int64_t outputs, std::int64_t inner) {
  const std::int64_t here = n.layout.block.experts / n.experts;
  Kernel k = product(n, ceil_div(n.expert_rows(), here), outputs, inner);
  k.calls = static_cast<std::int32_t>(here);
  return k;
}
Kernel expert_weight_gradient(const Native& n, std::int64_t outputs, std::int64_t inputs) {
  const std::int64_t here = n.layout.block.experts / n.experts;
  Kernel k = product(n, outputs, inputs, ceil_div(n.expert_rows(), here));
  k.calls = static_cast<std::int32_t>(here);
  return k;
}

/// What a rank does, stretch by stretch.
class WorkList {
 public:
  explicit WorkList(const Native& n) : n_(n) {}

  void add(const Kernel& kernel) { work_.back().kernels.push_back(kernel); }
  /// The rows of all ranks that share each layer.
  void gather() { exchange(Collective::all_gather, n_.exchanged()); }
  /// Each rank's rows of the sum over them.
  void sum() { exchange(Collective::reduce_scatter, n_.exchanged()); }
  void exchange(Collective kind, std::int64_t bytes) {
    if (bytes == 0) return;
    work_.back().exchange = kind;
    work_.back().bytes = bytes;
    work_.emplace_back();
  }
  void append(const NativeWork& work) {
    for (const NativeStretch& s : work) {
      for (const Kernel& k : s.kernels) add(k);
      if (s.exchange) exchange(*s.exchange, s.bytes);
    }
  }

  void add_linear_backward(std::int64_t rows, std::int64_t outputs, std::int64_t inputs) {
    add(product(n_, outputs, inputs, rows));  // of the weight
    add(product(n_, rows, inputs, outputs));  // of the input
  }
  /// Rotary embeddings and norms of heads, over q and k.
  void add_turns() {
    const NativeBlock& b = n_.layout.block;
    if (b.head_norms) add(rows_of(n_, KernelKind::elementwise, 2 * b.packed, b.packed));
    if (n_.layout.rotary) add(rows_of(n_, KernelKind::elementwise, 2 * b.packed, b.packed));
  }
  void add_activation() {
    const NativeBlock& b = n_.layout.block;
    const std::int64_t rows = b.experts > 0 ? n_.expert_rows() : n_.rows;
    add(some_rows(n_, KernelKind::elementwise, rows, b.up + b.inner, b.inner));
  }
  /// Rows to the experts that they are for, or back.
  void send_rows() { exchange(Collective::all_to_all, n_.exchanged_rows()); }
  /// Copies of rows in the order of experts.
  void dispatch() {
    const std::int64_t h = n_.layout.block.hidden;
    add(some_rows(n_, KernelKind::embedding, n_.expert_rows(), 2 * h, h));
    send_rows();
  }
  /// Sums of rows in the order of tokens.
  void combine() {
    const NativeBlock& b = n_.layout.block;
    add(rows_of(n_, KernelKind::elementwise, (b.per_token + 1) * b.hidden, b.hidden));
  }
  /// An MLP up to what its last product reads; layers of experts up to what comes back from them.
  void add_mlp() {
    const NativeBlock& b = n_.layout.block;
    if (b.experts == 0) {
      gather();
      add(product(n_, n_.rows, b.up, b.hidden));
      return add_activation();
    }
    add(product(n_, n_.rows, b.experts, b.hidden));
    add(rows_of(n_, KernelKind::softmax, b.experts, b.per_token));
    add(rows_of(n_, KernelKind::elementwise, 4 * b.per_token, b.per_token));  // slots
    dispatch();
    add(expert_product(n_, b.up, b.hidden));
    add_activation();
    add(expert_product(n_, b.hidden, b.inner));
    send_rows();
  }
  /// And from there to its result.
  void finish_mlp() {
    const NativeBlock& b = n_.layout.block;
    if (b.experts > 0) return combine();
    add(product(n_, n_.rows, b.hidden, b.inner));
    sum();
  }
  void add_mlp_backward() {
    const NativeBlock& b = n_.layout.block;
    const std::int64_t rows = b.experts > 0 ? n_.expert_rows() : n_.rows;
    const auto activation = some_rows(n_, KernelKind::elementwise, rows, 2 * b.up + b.inner, b.up);
    if (b.experts > 0) return add_experts_backward(activation);
    gather();  // the gradient of the block's result
    add_linear_backward(n_.rows, b.hidden, b.inner);
    add(activation);
    gather();  // what the norm made, again
    add_linear_backward(n_.rows, b.up, b.hidden);
    sum();
  }
  void add_experts_backward(const Kernel& activation) {
    const NativeBlock& b = n_.layout.block;
    add(some_rows(n_, KernelKind::elementwise, n_.expert_rows(), 3 * b.hidden, b.hidden));
    send_rows();
    add(expert_weight_gradient(n_, b.hidden, b.inner));
    add(expert_product(n_, b.inner, b.hidden));
    add(activation);
    add(expert_weight_gradient(n_, b.up, b.hidden));
    add(expert_product(n_, b.hidden, b.up));
    send_rows();
    add(rows_of(n_, KernelKind::softmax, 2 * b.experts, b.experts));
    add_linear_backward(n_.rows, b.experts, b.hidden);
    combine();
  }

  NativeWork take() { return std::move(work_); }

 private:
  const Native& n_;
  NativeWork work_{1};
};

/// Up to what the last product reads.
NativeWork block_to_activation(const Native& n) {
  const NativeBlock& b = n.layout.block;
  WorkList list(n);
  list.add(norm(n, 4));
  list.gather();
  list.add(product(n, n.rows, b.packed, b.hidden));
  list.add_turns();
  list.add(attention(n, KernelKind::attention));
  list.add(product(n, n.rows, b.hidden, b.query_width));
  list.sum();
  list.add(norm(n, 4));
  list.add_mlp();
  return list.take();
}

/// What a block does again before its backward pass. The last product of a block that is done again
/// whole is counted, though the engine leaves it out: with it the times of checkpointed steps are
/// nearer to those of the records (docs/explanation/validation.md).
NativeWork done_again(const Native& n) {
  WorkList list(n);
  if (n.plan.checkpointing == Checkpointing::full) {
    list.append(block_to_activation(n));
    if (n.layout.block.experts == 0)
      list.add(product(n, n.rows, n.layout.block.hidden, n.layout.block.inner));
  }
  if (n.plan.checkpointing == Checkpointing::selective) {
    list.add(norm(n, 2));
    list.add(norm(n, 2));
    if (n.layout.block.experts > 0) list.dispatch();
    list.add_activation();
    if (n.layout.block.head_norms) list.add_turns();
  }
  return list.take();
}

}  // namespace

NativeWork native_embedding(const Native& n) {
  const std::int64_t h = n.layout.block.hidden;
  WorkList list(n);
  list.add(rows_of(n, KernelKind::embedding, 2 * h, h));
  list.sum();
  return list.take();
}

NativeWork native_embedding_backward(const Native& n) {
  const std::int64_t h = n.layout.block.hidden;
  WorkList list(n);
  list.gather();
  list.add(rows_of(n, KernelKind::embedding_backward, 3 * h, h));
  return list.take();
}

NativeWork native_block_forward(const Native& n) {
  WorkList list(n);
  list.append(block_to_activation(n));
  list.finish_mlp();
  return list.take();
}

NativeWork native_block_backward(const Native& n) {
  const NativeBlock& b = n.layout.block;
  WorkList list(n);
  list.append(done_again(n));
  list.add_mlp_backward();
  list.add(norm_backward(n));
  list.gather();
  list.add_linear_backward(n.rows, b.hidden, b.query_width);
  list.add(attention(n, KernelKind::attention_backward));
  list.add_turns();
  list.gather();
  list.add_linear_backward(n.rows, b.packed, b.hidden);
  list.sum();
  list.add(norm_backward(n));
  return list.take();
}

NativeWork native_head(const Native& n) {
  const std::int64_t h = n.layout.block.hidden, vocabulary = n.layout.padded_vocabulary;
  WorkList list(n);
  list.add(norm(n, 4));
  list.gather();
  for (std::int64_t first = 0; first < n.rows; first += n.logit_rows()) {
    const std::int64_t rows = std::min(n.logit_rows(), n.rows - first);
    list.add(product(n, rows, vocabulary, h));
    Kernel loss = started(n, KernelKind::softmax);
    loss.elements = static_cast<double>(rows) * static_cast<double>(vocabulary);
    loss.bytes = 2 * loss.elements * static_cast<double>(n.width);
    list.add(loss);
    if (n.tensor > 1) list.exchange(Collective::all_gather, 4 * 3 * n.tensor * rows);
    list.add_linear_backward(rows, vocabulary, h);
  }
  list.sum();
  list.add(norm_backward(n));
  return list.take();
}

std::vector<Kernel> native_hand_on(const Native& n) {
  const std::int64_t h = n.layout.block.hidden;
  return {some_rows(n, KernelKind::elementwise, n.part(), 3 * h, h)};
}

std::vector<Kernel> native_update(const Native& n) {
  const Precision& p = n.plan.precision;
  double owned = 0;
  std::int64_t units = 0;
  for (const NativeUnit& u : n.layout.units()) {
    owned += static_cast<double>(n.shard(u)) * static_cast<double>(u.count);
    units += u.count;
  }
  const auto calls = static_cast<std::int32_t>(units);
  // Reads the gradient; reads and writes both moments and where the update lives; writes the copy.
  const double home = 2.0 * static_cast<double>(p.master ? size_of(*p.master) + 1 : n.width);
  const double bytes =
      static_cast<double>(n.width) + 4.0 * static_cast<double>(size_of(p.optimizer_states)) + home;
  return {sweep(owned * static_cast<double>(n.width), p.params, calls),
          sweep(owned * bytes, p.optimizer_states, calls)};
}

std::vector<Kernel> native_layer_forward(const Native& n, std::size_t layer) {
  const std::int64_t inputs = n.layout.widths[layer], outputs = n.layout.widths[layer + 1];
  return {product(n, n.rows, outputs, inputs),
          rows_of(n, KernelKind::elementwise, 2 * outputs, outputs)};
}

std::vector<Kernel> native_layer_backward(const Native& n, std::size_t layer) {
  const std::int64_t inputs = n.layout.widths[layer], outputs = n.layout.widths[layer + 1];
  std::vector<Kernel> list{product(n, outputs, inputs, n.rows)};
  if (layer > 0) {
    list.push_back(product(n, n.rows, inputs, outputs));
    list.push_back(rows_of(n, KernelKind::elementwise, 3 * inputs, inputs));
  }
  return list;
}

}  // namespace shardplan
