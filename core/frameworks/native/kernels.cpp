#include "frameworks/native/kernels.h"

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

/// Reads and writes `columns` of every row in all, and writes `written` of them.
Kernel rows_of(const Native& n, KernelKind kind, std::int64_t columns, std::int64_t written) {
  Kernel k = started(n, kind);
  k.bytes = static_cast<double>(n.rows) * static_cast<double>(columns * n.width);
  k.elements = static_cast<double>(n.rows) * static_cast<double>(written);
  return k;
}

Kernel attention(const Native& n, KernelKind kind) {
  const Workload& w = n.plan.workload;
  const NativeBlock& b = n.layout.block;
  Kernel k = started(n, kind);
  k.causal = true;
  k.by_rows = !n.cudnn_attention();
  k.m = k.n = w.sequence_length;
  k.k = n.layout.rotary_dim;
  k.batch = w.micro_batch * b.query_heads;
  k.bytes = static_cast<double>(n.rows) * static_cast<double>((b.packed + b.query_width) * n.width);
  k.elements = static_cast<double>(n.rows) * static_cast<double>(b.query_width);
  return k;
}

Kernel norm(const Native& n, std::int64_t passes) {
  const std::int64_t h = n.layout.block.hidden;
  return rows_of(n, KernelKind::layer_norm, passes * h, h);
}
Kernel norm_backward(const Native& n) {
  const std::int64_t h = n.layout.block.hidden;
  return rows_of(n, KernelKind::layer_norm_backward, 4 * h, h);
}

/// Rotary embeddings and norms of heads, over q and k.
void add_turns(std::vector<Kernel>& list, const Native& n) {
  const NativeBlock& b = n.layout.block;
  if (b.head_norms) list.push_back(rows_of(n, KernelKind::elementwise, 2 * b.packed, b.packed));
  if (n.layout.rotary) list.push_back(rows_of(n, KernelKind::elementwise, 2 * b.packed, b.packed));
}

void add_linear_backward(std::vector<Kernel>& list, const Native& n, std::int64_t rows,
                         std::int64_t outputs, std::int64_t inputs) {
  list.push_back(product(n, outputs, inputs, rows));  // of the weight
  list.push_back(product(n, rows, inputs, outputs));  // of the input
}

}  // namespace

std::vector<Kernel> native_embedding(const Native& n) {
  const std::int64_t h = n.layout.block.hidden;
  return {rows_of(n, KernelKind::embedding, 2 * h, h)};
}

std::vector<Kernel> native_embedding_backward(const Native& n) {
  const std::int64_t h = n.layout.block.hidden;
  return {rows_of(n, KernelKind::embedding_backward, 3 * h, h)};
}

std::vector<Kernel> native_block_forward(const Native& n) {
  const NativeBlock& b = n.layout.block;
  std::vector<Kernel> list{norm(n, 4), product(n, n.rows, b.packed, b.hidden)};
  add_turns(list, n);
  list.push_back(attention(n, KernelKind::attention));
  list.push_back(product(n, n.rows, b.hidden, b.query_width));
  list.push_back(norm(n, 4));
  list.push_back(product(n, n.rows, b.up, b.hidden));
  list.push_back(rows_of(n, KernelKind::elementwise, b.up + b.inner, b.inner));
  list.push_back(product(n, n.rows, b.hidden, b.inner));
  return list;
}

std::vector<Kernel> native_block_backward(const Native& n) {
  const NativeBlock& b = n.layout.block;
  std::vector<Kernel> list;
  if (n.plan.checkpointing == Checkpointing::selective) {
    list = {norm(n, 2), norm(n, 2), rows_of(n, KernelKind::elementwise, b.up + b.inner, b.inner)};
    if (b.head_norms) add_turns(list, n);
  }
  add_linear_backward(list, n, n.rows, b.hidden, b.inner);
  list.push_back(rows_of(n, KernelKind::elementwise, 2 * b.up + b.inner, b.up));
  add_linear_backward(list, n, n.rows, b.up, b.hidden);
  list.push_back(norm_backward(n));
  add_linear_backward(list, n, n.rows, b.hidden, b.query_width);
  list.push_back(attention(n, KernelKind::attention_backward));
  add_turns(list, n);
  add_linear_backward(list, n, n.rows, b.packed, b.hidden);
  list.push_back(norm_backward(n));
  return list;
}

std::vector<Kernel> native_head(const Native& n) {
  const std::int64_t h = n.layout.block.hidden, vocabulary = n.layout.padded_vocabulary;
  std::vector<Kernel> list{norm(n, 4)};
  for (std::int64_t first = 0; first < n.rows; first += n.logit_rows()) {
    const std::int64_t rows = std::min(n.logit_rows(), n.rows - first);
    list.push_back(product(n, rows, vocabulary, h));
    Kernel loss = started(n, KernelKind::softmax);
    loss.elements = static_cast<double>(rows) * static_cast<double>(vocabulary);
    loss.bytes = 2 * loss.elements * static_cast<double>(n.width);
    list.push_back(loss);
    add_linear_backward(list, n, rows, vocabulary, h);
  }
  list.push_back(norm_backward(n));
  return list;
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
