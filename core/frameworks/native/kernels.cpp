#include "frameworks/native/kernels.h"

#include <algorithm>
#include <utility>

#include "frameworks/native/kernel_parts.h"
#include "frameworks/native/narrow.h"

namespace shardplan {
namespace {

/// Of so many queries of a sequence and the keys they see, all of them unless it is causal.
Kernel attention(const Native& n, KernelKind kind, std::int64_t queries, std::int64_t keys,
                 bool causal) {
  const std::int64_t batch = n.plan.workload.micro_batch;
  const NativeBlock& b = n.layout.block;
  Kernel k = started(n, kind);
  k.causal = causal;
  k.by_rows = !n.cudnn_attention();
  k.m = queries;
  k.n = keys;
  k.k = n.layout.head_dim;
  k.batch = batch * b.query_heads;
  k.elements = static_cast<double>(batch * queries) * static_cast<double>(b.query_width);
  k.bytes =
      static_cast<double>(n.width) *
      (2 * k.elements + static_cast<double>(batch * keys) * static_cast<double>(n.key_columns()));
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

/// Of all experts of the rank: one call for all together where each has as many rows, unless they
/// are to be `apart`, else a call for each.
Kernel of_experts(const Native& n, Kernel k, bool apart) {
  const std::int64_t here = n.experts_at_work();
  if (apart || n.capacity() == 0) {
    k.calls = static_cast<std::int32_t>(here);
    return k;
  }
  k.batch = here;
  k.bytes *= static_cast<double>(here);
  k.elements *= static_cast<double>(here);
  return k;
}
/// Of their rows, as many as each has in the mean.
Kernel expert_product(const Native& n, std::int64_t outputs, std::int64_t inner) {
  return product(n, n.mean_rows_of_expert(), outputs, inner);
}
Kernel expert_weight_gradient(const Native& n, std::int64_t outputs, std::int64_t inputs) {
  return product(n, outputs, inputs, n.mean_rows_of_expert());
}

/// What a rank does, stretch by stretch.
class WorkList {
 public:
  /// `lowest`: the product below which nothing is trained.
  explicit WorkList(const Native& n, std::optional<NativeLinear> lowest = std::nullopt)
      : n_(n), lowest_(lowest) {}

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
  /// The host reads how many rows each expert has been given, where that decides what follows.
  void read_counts() {
    if (n_.capacity() > 0) return;
    work_.back().read = true;
    work_.emplace_back();
  }
  /// Keys and values, or their gradients, go to the next rank beside the kernels that follow, up to
  /// settle().
  void pass_on(std::int64_t bytes) {
    settle();
    work_.back().passed_on = bytes;
  }
  void settle() { work_.emplace_back(); }
  void append(const NativeWork& work) {
    for (const NativeStretch& s : work) {
      if (s.passed_on > 0) pass_on(s.passed_on);
      for (const Kernel& k : s.kernels) add(k);
      if (s.exchange) exchange(*s.exchange, s.bytes);
      if (s.read) read_counts();
      if (s.passed_on > 0) settle();
    }
  }

  /// Of a matrix of the block, which adapters may be beside, and which may have 4 bits.
  void add_block_linear(NativeLinear l, std::int64_t outputs, std::int64_t inputs,
                        bool again = false) {
    widen(l);
    if (n_.narrow()) {
      add_narrow(NarrowWork(n_, l).forward(again));
    } else {
      add(product(n_, n_.rows, outputs, inputs));
    }
    const NativeAdapters& of = n_.layout.block.of(l);
    if (of.parts == 0) return;
    add(product(n_, n_.rows, of.parts * n_.layout.block.rank, inputs));
    add_parts(of, added(n_, product(n_, n_.rows, of.rows / of.parts, n_.layout.block.rank)));
  }
  /// False: the pass ends there.
  bool add_block_linear_backward(NativeLinear l, std::int64_t outputs, std::int64_t inputs) {
    const NativeAdapters& of = n_.layout.block.of(l);
    const std::int64_t rank = n_.layout.block.rank, low = of.parts * rank;
    if (of.parts > 0) {
      add_parts(of, product(n_, of.rows / of.parts, rank, n_.rows));  // of b
      add_parts(of, product(n_, n_.rows, rank, of.rows / of.parts));  // of what a made
      add(product(n_, low, inputs, n_.rows));                         // of a
    }
    if (l == lowest_) return false;
    widen(l);
    if (n_.narrow()) {
      add_narrow(NarrowWork(n_, l).backward());
    } else {
      add_linear_backward(n_.rows, outputs, inputs, n_.frozen());
    }
    if (of.parts > 0) add(added(n_, product(n_, n_.rows, inputs, low)));
    return true;
  }
  void add_linear_backward(std::int64_t rows, std::int64_t outputs, std::int64_t inputs,
                           bool frozen = false) {
    if (!frozen) add(product(n_, outputs, inputs, rows));  // of the weight
    add(product(n_, rows, inputs, outputs));               // of the input
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
    add(some_rows(n_, KernelKind::elementwise, n_.part(), (b.per_token + 1) * b.hidden, b.hidden));
  }
  /// An MLP up to what its last product reads; layers of experts up to what comes back from them.
  void add_mlp() {
    const NativeBlock& b = n_.layout.block;
    if (b.experts == 0) {
      gather();
      add_block_linear(NativeLinear::up, b.up, b.hidden);
      return add_activation();
    }
    const std::int64_t rows = n_.part();
    add(product(n_, rows, b.experts, b.hidden));
    add(some_rows(n_, KernelKind::softmax, rows, b.experts, b.per_token));
    add(some_rows(n_, KernelKind::elementwise, rows, 4 * b.per_token, b.per_token));  // slots
    read_counts();
    dispatch();
    add_experts_linear(NativeLinear::up, b.up, b.hidden);
    add_activation();
    add_experts_linear(NativeLinear::down, b.hidden, b.inner);
    send_rows();
  }
  /// And from there to its result.
  void finish_mlp() {
    const NativeBlock& b = n_.layout.block;
    if (b.experts > 0) return combine();
    add_block_linear(NativeLinear::down, b.hidden, b.inner);
    sum();
  }
  /// What selective checkpointing does of it again.
  void renew_mlp() {
    const NativeBlock& b = n_.layout.block;
    const bool up = n_.product_again(NativeLinear::up);
    if (b.experts == 0) {
      if (up) gather();
      if (up) add_block_linear(NativeLinear::up, b.up, b.hidden);
      return add_activation();
    }
    dispatch();
    if (up) add_experts_linear(NativeLinear::up, b.up, b.hidden);
    add_activation();
    if (!n_.product_again(NativeLinear::down)) return;
    add_experts_linear(NativeLinear::down, b.hidden, b.inner);
    send_rows();
  }
  /// False: the pass ends there.
  bool add_mlp_backward() {
    const NativeBlock& b = n_.layout.block;
    const std::int64_t rows = b.experts > 0 ? n_.expert_rows() : n_.rows;
    const auto activation = some_rows(n_, KernelKind::elementwise, rows, 2 * b.up + b.inner, b.up);
    if (b.experts > 0) return add_experts_backward(activation);
    gather();  // the gradient of the block's result
    if (!add_block_linear_backward(NativeLinear::down, b.hidden, b.inner)) return false;
    add(activation);
    gather();  // what the norm made, again
    if (!add_block_linear_backward(NativeLinear::up, b.up, b.hidden)) return false;
    sum();
    return true;
  }
  /// Of all experts of the rank. What has 4 bits has room for one matrix of elements.
  void add_experts_linear(NativeLinear l, std::int64_t outputs, std::int64_t inputs) {
    const NativeAdapters& of = n_.layout.block.of(l);
    widen(l);
    if (n_.narrow()) {
      add_narrow(NarrowWork(n_, l).forward(false));
    } else {
      add(of_experts(n_, expert_product(n_, outputs, inputs), of.elements > 0));
    }
    if (of.parts == 0) return;
    const std::int64_t rank = n_.layout.block.rank;
    add(of_experts(n_, expert_product(n_, rank, inputs), false));
    add(of_experts(n_, added(n_, expert_product(n_, outputs, rank)), false));
  }
  /// False: the pass ends there.
  bool add_experts_linear_backward(NativeLinear l, std::int64_t outputs, std::int64_t inputs) {
    const NativeAdapters& of = n_.layout.block.of(l);
    const std::int64_t rank = n_.layout.block.rank;
    if (of.parts > 0) {
      add(of_experts(n_, expert_weight_gradient(n_, outputs, rank), false));  // of b
      add(of_experts(n_, expert_product(n_, rank, outputs), false));          // of what a made
      add(of_experts(n_, expert_weight_gradient(n_, rank, inputs), false));   // of a
    }
    if (l == lowest_) return false;
    widen(l);
    clear_idle(outputs, inputs);
    if (n_.narrow()) {
      add_narrow(NarrowWork(n_, l).backward());
    } else {
      const bool apart = of.elements > 0;
      if (!n_.frozen()) add(of_experts(n_, expert_weight_gradient(n_, outputs, inputs), apart));
      add(of_experts(n_, expert_product(n_, inputs, outputs), apart));
    }
    if (of.parts > 0) add(of_experts(n_, added(n_, expert_product(n_, inputs, rank)), false));
    return true;
  }
  /// The gradients of experts that no row was given to.
  void clear_idle(std::int64_t outputs, std::int64_t inputs) {
    const std::int64_t idle = n_.matrices_of(NativeLinear::up) - n_.experts_at_work();
    if (idle == 0 || n_.frozen()) return;
    Kernel k = pass_over(n_, outputs, n_.width * inputs, 0);
    k.calls = static_cast<std::int32_t>(idle);
    add(k);
  }
  /// False: the pass ends there.
  bool add_experts_backward(const Kernel& activation) {
    const NativeBlock& b = n_.layout.block;
    add(some_rows(n_, KernelKind::elementwise, n_.expert_rows(), 3 * b.hidden, b.hidden));
    send_rows();
    if (!add_experts_linear_backward(NativeLinear::down, b.hidden, b.inner)) return false;
    add(activation);
    if (!add_experts_linear_backward(NativeLinear::up, b.up, b.hidden)) return false;
    send_rows();
    add(some_rows(n_, KernelKind::softmax, n_.part(), 2 * b.experts, b.experts));
    add_linear_backward(n_.part(), b.experts, b.hidden, n_.frozen());
    combine();
    return true;
  }

  NativeWork take() { return std::move(work_); }

 private:
  void add_narrow(const NarrowProduct& narrow) {
    for (const Kernel& k : narrow.found) add(k);
    exchange(Collective::all_gather, narrow.told);
    for (const Kernel& k : narrow.rest) add(k);
  }
  /// As many products as layers of the matrix are adapted, alike in size here.
  void add_parts(const NativeAdapters& of, Kernel k) {
    k.calls = static_cast<std::int32_t>(of.parts);
    add(k);
  }
  /// A matrix of 4 bits is read, and written as it is multiplied with; or those of all experts, one
  /// after the other.
  void widen(NativeLinear l) {
    const std::int64_t elements = n_.layout.block.of(l).elements;
    if (elements == 0) return;
    Kernel k = pass_over(n_, ceil_div(elements, std::int64_t{2}), 1 + 2 * n_.width, 2);
    k.calls = static_cast<std::int32_t>(n_.matrices_at_work(l));
    add(k);
  }

  const Native& n_;
  std::optional<NativeLinear> lowest_;
  NativeWork work_{1};
};

/// What a rank computes with the keys of another, whose place in the ring is `turn` before its own:
/// half of its queries or all, with all of those keys or half.
Kernel other_attention(const Native& n, KernelKind kind, std::int64_t turn) {
  const std::int64_t half = n.sequence / 2;
  return turn <= n.context_rank ? attention(n, kind, n.sequence, half, false)
                                : attention(n, kind, half, n.sequence, false);
}

/// Keys and values of the packed rows, to where they are passed on from.
Kernel pack_keys(const Native& n) {
  return pass_over(n, n.rows, 2 * n.key_columns() * n.width, n.key_columns());
}

void attend(const Native& n, WorkList& list) {
  const Kernel own = attention(n, KernelKind::attention, n.sequence, n.sequence, true);
  if (n.context == 1) return list.add(own);
  const std::int64_t q = n.layout.block.query_width;
  const std::int64_t block = checked_mul(n.rows, n.key_columns() * n.width);
  const Kernel turned = pass_over(n, n.rows, (4 + n.width) * q, q);  // to fp32, or back
  list.add(pack_keys(n));
  list.pass_on(block);
  list.add(own);
  list.add(turned);
  for (std::int64_t turn = 1; turn < n.context; ++turn) {
    list.pass_on(turn + 1 < n.context ? block : 0);
    list.add(other_attention(n, KernelKind::attention, turn));
    const std::int64_t merged = turn <= n.context_rank ? n.rows : n.rows / 2;
    list.add(pass_over(n, merged, (8 + n.width) * q, q));
  }
  list.settle();
  list.add(turned);
}

void attend_backward(const Native& n, WorkList& list) {
  const Kernel own = attention(n, KernelKind::attention_backward, n.sequence, n.sequence, true);
  if (n.context == 1) return list.add(own);
  const std::int64_t q = n.layout.block.query_width, kv = n.key_columns();
  const std::int64_t block = checked_mul(n.rows, kv * n.width);
  const std::int64_t gradients = checked_mul(n.rows, kv * 4);
  const auto convert = [&](std::int64_t columns) {
    list.add(pass_over(n, n.rows, (4 + n.width) * columns, columns));
  };
  const auto add_up = [&](std::int64_t rows, std::int64_t columns) {
    list.add(pass_over(n, rows, (8 + n.width) * columns, columns));
  };
  list.add(pack_keys(n));
  list.pass_on(block);
  list.add(own);
  convert(q);
  convert(kv);
  for (std::int64_t turn = 1; turn < n.context; ++turn) {
    list.pass_on(gradients + (turn + 1 < n.context ? block : 0));
    list.add(other_attention(n, KernelKind::attention_backward, turn));
    list.settle();
    const bool earlier = turn <= n.context_rank;
    add_up(earlier ? n.rows : n.rows / 2, q);
    add_up(earlier ? n.rows / 2 : n.rows, kv);
  }
  list.pass_on(gradients);
  list.settle();
  convert(q);
  convert(kv);
}

/// Up to what the last product reads.
NativeWork block_to_activation(const Native& n) {
  const NativeBlock& b = n.layout.block;
  WorkList list(n);
  list.add(norm(n, 4));
  list.gather();
  list.add_block_linear(NativeLinear::qkv, b.packed, b.hidden);
  list.add_turns();
  attend(n, list);
  list.add_block_linear(NativeLinear::out, b.hidden, b.query_width);
  list.sum();
  list.add(norm(n, 4));
  list.add_mlp();
  return list.take();
}

/// What selective checkpointing does again.
void renew(const Native& n, WorkList& list) {
  const NativeBlock& b = n.layout.block;
  list.add(norm(n, 2));
  if (n.product_again(NativeLinear::qkv)) {
    list.gather();
    list.add_block_linear(NativeLinear::qkv, b.packed, b.hidden);
    list.add_turns();
  } else if (b.head_norms) {
    list.add_turns();
  }
  if (n.product_again(NativeLinear::out)) {
    list.add_block_linear(NativeLinear::out, b.hidden, b.query_width);
    list.sum();
    list.add(norm(n, 4));
  } else {
    list.add(norm(n, 2));
  }
  list.renew_mlp();
}

/// What a block does again before its backward pass. The last product of a block that is done again
/// whole is counted, though the engine leaves it out: with it the times of checkpointed steps are
/// nearer to those of the records (docs/explanation/validation.md).
NativeWork done_again(const Native& n, bool whole) {
  WorkList list(n);
  if (whole) {
    list.append(block_to_activation(n));
    if (n.layout.block.experts == 0)
      list.add_block_linear(NativeLinear::down, n.layout.block.hidden, n.layout.block.inner, true);
  }
  if (n.renews()) renew(n, list);
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
  if (n.layout.embedding.frozen) return list.take();
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

NativeWork native_block_backward(const Native& n, const NativeBlockPass& pass) {
  const NativeBlock& b = n.layout.block;
  WorkList list(n, pass.lowest ? std::optional(b.lowest()) : std::nullopt);
  list.append(done_again(n, pass.again));
  if (!list.add_mlp_backward()) return list.take();
  list.add(norm_backward(n));
  list.gather();
  if (!list.add_block_linear_backward(NativeLinear::out, b.hidden, b.query_width))
    return list.take();
  attend_backward(n, list);
  list.add_turns();
  list.gather();
  if (!list.add_block_linear_backward(NativeLinear::qkv, b.packed, b.hidden)) return list.take();
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
    list.add_linear_backward(rows, vocabulary, h, n.layout.head.frozen);
  }
  list.sum();
  list.add(norm_backward(n));
  return list.take();
}

std::vector<Kernel> native_hand_on(const Native& n) {
  const std::int64_t h = n.layout.block.hidden;
  return {some_rows(n, KernelKind::elementwise, n.part(), 3 * h, h)};
}

}  // namespace shardplan
