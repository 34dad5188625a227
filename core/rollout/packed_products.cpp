#include "rollout/packed_products.h"

#include <algorithm>
#include <map>
#include <utility>

#include "frameworks/registry.h"
#include "model/model.h"
#include "rollout/engine.h"

namespace shardplan {
namespace {

bool is_product(const Op& op) {
  return op.kind == OpKind::linear || op.kind == OpKind::grouped_linear;
}

bool is_norm(const Op& op) {
  return op.kind == OpKind::rsqrt || op.kind == OpKind::rms_norm || op.kind == OpKind::layer_norm;
}

bool is_activation(const Op& op) {
  return op.kind == OpKind::silu || op.kind == OpKind::gelu || op.kind == OpKind::relu ||
         op.kind == OpKind::gated;
}

/// Kernels that an engine starts for what stands between two products: one for each norm, to which
/// it adds the residual; one that turns queries and keys; one that writes keys and values to their
/// pages; one for an activation and what it gates (vllm/model_executor/layers/layernorm.py,
/// rotary_embedding and activation.py, v1/attention/backends/flash_attn.py; SGLang's are the same).
class KernelsBetween {
 public:
  void see(const Op& op) {
    if (is_norm(op)) ++norms_;
    turned_ |= op.kind == OpKind::cat || op.kind == OpKind::rotary;
    cached_ |= op.kind == OpKind::cache;
    activated_ |= is_activation(op);
  }
  void join(const KernelsBetween& other) {
    norms_ += other.norms_;
    turned_ |= other.turned_;
    cached_ |= other.cached_;
    activated_ |= other.activated_;
  }
  double count() const {
    return std::max(1, norms_ + (turned_ ? 1 : 0) + (cached_ ? 1 : 0) + (activated_ ? 1 : 0));
  }

 private:
  int norms_ = 0;
  bool turned_ = false, cached_ = false, activated_ = false;
};

}  // namespace

Plan engine_share(const Plan& plan, const RolloutEngine& engine) {
  Plan own = plan;
  own.framework = {};
  own.framework.kind = default_framework(1);
  own.parallel = {};
  own.parallel.tensor = engine.tensor_parallel;
  own.workload.generation.engine = engine;  // whose ranks may share heads of keys
  return own;
}

PackedProducts packed_products(const SegmentRun& segment, bool through) {
  PackedProducts out;
  out.repeat = static_cast<double>(segment.segment->repeat);
  out.in_blocks = segment.segment->checkpointable;
  std::vector<ValueId> inputs;
  std::vector<KernelsBetween> before;
  std::vector<bool> attends;  // by product: attention that the class writes out, which engines fuse
  KernelsBetween between;
  std::map<ValueId, ValueId> handed_on;  // to the products of a rank, without an exchange
  for (const Op& op : segment.segment->graph.ops()) {
    between.see(op);
    if (through && op.kind == OpKind::communicate && op.exchange.forward == Exchange::none)
      handed_on[op.out] = op.in[0];
    if (op.kind == OpKind::matmul) attends.push_back(op.work.scale == Scale::context_scores);
    if (!is_product(op)) continue;
    attends.push_back(false);
    const auto from = handed_on.find(op.in[0]);
    inputs.push_back(from == handed_on.end() ? op.in[0] : from->second);
    before.push_back(std::exchange(between, {}));
  }
  std::vector<Kernel> all;
  for (const Kernel& k : segment.forward.forward_kernels)
    if (k.kind == KernelKind::product) all.push_back(k);
  if (all.size() == attends.size()) {
    std::size_t i = 0;
    std::erase_if(all, [&](const Kernel&) { return attends[i++]; });
  }
  out.paired = all.size() == inputs.size();
  // Of products that are packed into the last one: norms of its parts follow it.
  KernelsBetween behind;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool packed = out.paired && i > 0 && inputs[i] == inputs[i - 1] &&
                        all[i].batch == out.kernels.back().batch &&
                        all[i].k == out.kernels.back().k && all[i].m == out.kernels.back().m;
    if (packed) {
      out.kernels.back().n += all[i].n;
      behind.join(before[i]);
    } else {
      out.kernels.push_back(all[i]);
      if (out.paired) behind.join(before[i]);
      out.before.push_back(std::exchange(behind, {}).count());
    }
  }
  return out;
}

}  // namespace shardplan
