#include "serving/engine_pass.h"

#include <algorithm>
#include <cmath>

#include "frameworks/registry.h"
#include "lowering/inference/generate.h"
#include "lowering/inference/pass.h"
#include "parallel/groups.h"
#include "rollout/engine.h"
#include "timing/collective_time.h"

namespace shardplan {
namespace {

std::int64_t whole(double x) {
  return std::max<std::int64_t>(1, std::llround(x));
}

/// Engines fill a pass up to the next size that they have a graph of: one that products of every
/// format take at full rate.
std::int64_t padded(double rows) {
  constexpr std::int64_t kMultiple = 16;
  return round_up(whole(rows), kMultiple);
}

/// The plan of one GPU of the engine: its share of the layers, everything in 16 bits.
Plan engine_plan(const Plan& plan) {
  Plan own = plan;
  own.framework = {};
  own.framework.kind = default_framework(1);
  own.parallel = {};
  own.parallel.tensor = plan.workload.generation.engine->tensor_parallel;
  own.workload.micro_batch = 1;
  own.workload.sequence_length = 1;
  own.workload.generation.new_tokens = 0;
  return own;
}

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
  /// Of what was seen since the last call.
  double take() {
    const int count = norms_ + (turned_ ? 1 : 0) + (cached_ ? 1 : 0) + (activated_ ? 1 : 0);
    *this = {};
    return std::max(1, count);
  }

 private:
  int norms_ = 0;
  bool turned_ = false, cached_ = false, activated_ = false;
};

/// Rates of kernels that a graph starts one after the other. A training step leaves the GPU pauses
/// in which its clock recovers, and its products are faster than the same ones back to back
/// (ProductRates::burst). A pass leaves none.
TimeRates without_pauses(TimeRates rates) {
  rates.kernels.product.burst = 1;
  return rates;
}

/// Bytes of operands and result of all calls. Elements of the weight may have fewer bits.
double product_bytes(const Kernel& p, double weight_bytes) {
  const auto m = static_cast<double>(p.m), n = static_cast<double>(p.n),
             k = static_cast<double>(p.k);
  return static_cast<double>(p.batch) * p.calls *
         ((m * k + m * n) * static_cast<double>(size_of(DType::bf16)) + k * n * weight_bytes);
}

/// In front of a product: its operands are made from the last product's result, and read and
/// written once on the way.
double bytes_between(const Kernel& before, const Kernel& after) {
  const auto rows = [](const Kernel& p) { return static_cast<double>(p.m * p.batch); };
  return static_cast<double>(size_of(DType::bf16)) * (rows(before) * static_cast<double>(before.n) +
                                                      rows(after) * static_cast<double>(after.k));
}

}  // namespace

void EnginePassTime::add(const EnginePassTime& pass, double times) {
  products += times * pass.products;
  attention += times * pass.attention;
  between += times * pass.between;
  exchanges += times * pass.exchanges;
  host += times * pass.host;
}

ServedNetwork::ServedNetwork(const Model& model, const Plan& plan, const TimeRates& rates)
    : plan_(engine_plan(plan)),
      share_(model, plan_),
      rates_(without_pauses(rates)),
      peaks_(peaks_of(plan.cluster.gpu, plan.precision.compute)) {}

ModelRun ServedNetwork::run_of(std::int64_t rows, std::int64_t tokens, std::int64_t past) const {
  Plan plan = plan_;
  plan.workload.micro_batch = rows;
  return run_pass(model(), plan, {tokens, past}, nullptr);
}

double ServedNetwork::cache_bytes(double tokens) const {
  // Layers that slide keep their window alone, so that this is no straight line through zero. Many
  // sequences at once, because the allocator's rounding is not of pages.
  constexpr std::int64_t kSequences = 64;
  Plan plan = plan_;
  plan.workload.micro_batch = kSequences;
  plan.workload.sequence_length = whole(tokens);
  return static_cast<double>(full_cache_bytes(model(), plan)) / static_cast<double>(kSequences);
}

/// Linears that read the same tensor are one product. The tape starts a product for each linear, in
/// their order; where it starts others too, nothing is packed.
ServedNetwork::Products ServedNetwork::products_of(const SegmentRun& segment) const {
  Products out;
  out.repeat = static_cast<double>(segment.segment->repeat);
  out.in_blocks = segment.segment->checkpointable;
  std::vector<ValueId> inputs;
  std::vector<double> before;
  KernelsBetween between;
  for (const Op& op : segment.segment->graph.ops()) {
    between.see(op);
    if (!is_product(op)) continue;
    inputs.push_back(op.in[0]);
    before.push_back(between.take());
  }
  std::vector<Kernel> all;
  for (const Kernel& k : segment.forward.forward_kernels)
    if (k.kind == KernelKind::product) all.push_back(k);
  const bool paired = all.size() == inputs.size();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool packed = paired && i > 0 && inputs[i] == inputs[i - 1] &&
                        all[i].batch == out.kernels.back().batch &&
                        all[i].k == out.kernels.back().k && all[i].m == out.kernels.back().m;
    if (packed) {
      out.kernels.back().n += all[i].n;
    } else {
      out.kernels.push_back(all[i]);
      out.before.push_back(paired ? before[i] : 1);
    }
  }
  return out;
}

/// A format that tensor cores take multiplies at its own rate; of another the weights are read in
/// their bits and widened within the product.
double ServedNetwork::product_seconds(const Kernel& product, bool in_blocks) const {
  const Quantization stored = plan_.workload.generation.weights;
  if (!in_blocks || stored == Quantization::none)
    return kernel_seconds(product, peaks_, rates_.kernels);
  const NumberFormat& format = format_of(stored);
  Kernel narrow = product;
  if (format.rate == PeakRate::fp8 && peaks_.fp8 > 0) {
    narrow.type = DType::e4m3;
    return kernel_seconds(narrow, peaks_, rates_.kernels);
  }
  if (format.rate == PeakRate::int8 && peaks_.int8 > 0) {
    narrow.type = DType::i8;
    return kernel_seconds(narrow, peaks_, rates_.kernels);
  }
  GpuPeaks computing = peaks_;
  computing.memory = peaks_.memory * 1e3;  // what it computes takes as long as it does
  const double moved = product_bytes(product, static_cast<double>(format.bits) / 8);
  return std::max(
      kernel_seconds(product, computing, rates_.kernels),
      rates_.kernels.product.seconds + moved / (rates_.kernels.product.memory * peaks_.memory));
}

void ServedNetwork::add_products(EnginePassTime& time, const Products& products) const {
  const MemoryRate& fused =
      rates_.kernels.memory[static_cast<std::size_t>(KernelKind::triton_reduction)];
  for (std::size_t i = 0; i < products.kernels.size(); ++i) {
    const Kernel& p = products.kernels[i];
    // The first of a layer follows the last of the layer before.
    const Kernel& before = products.kernels[i == 0 ? products.kernels.size() - 1 : i - 1];
    const double bytes = bytes_between(before, p);
    const double share = bytes < rates_.kernels.cache_bytes ? fused.cached : fused.bandwidth;
    time.products += products.repeat * product_seconds(p, products.in_blocks);
    time.between +=
        products.repeat * products.before[i] * (fused.seconds + bytes / (share * peaks_.memory));
  }
}

void ServedNetwork::add_body(EnginePassTime& time, const ModelRun& run) const {
  const RolloutEngine& engine = *plan_.workload.generation.engine;
  LinkRates links = rates_.links;
  links.seconds = engine.engine->exchange_seconds;
  const auto groups = group_shapes(plan_);
  Program exchanges;
  ProgramBuilder b(exchanges);
  for (std::size_t i = 0; i + 1 < run.segments.size(); ++i) {
    const SegmentRun& s = run.segments[i];
    add_products(time, products_of(s));
    exchanges.events.clear();
    for (const TapeExchange& e : s.forward.exchanges) detail::emit_exchange(b, e);
    for (const Event& e : exchanges.events)
      if (e.kind == Event::Kind::collective)
        time.exchanges +=
            static_cast<double>(s.segment->repeat) *
            collective_seconds(e, groups[static_cast<std::size_t>(e.group)], plan_.cluster, links);
  }
}

/// The head's rows are sequences that get a token. The sampler reads and writes a row of the
/// vocabulary in fp32 for each of its passes.
void ServedNetwork::add_head(EnginePassTime& time, double rows) const {
  const ModelRun run = run_of(padded(rows), 1, 0);
  add_products(time, products_of(run.segments.back()));
  const MemoryRate& r =
      rates_.kernels.memory[static_cast<std::size_t>(KernelKind::triton_reduction)];
  constexpr double kFloat = 4;
  const auto passes = static_cast<double>(plan_.workload.generation.engine->engine->sampler_rows);
  const double bytes = passes * 2 * kFloat * rows * static_cast<double>(model().facts.vocabulary);
  time.between += passes * r.seconds + bytes / (r.bandwidth * peaks_.memory);
}

/// Sequences that decode read their keys and values once; prompts are computed as in a pass over
/// them, and read what they share.
void ServedNetwork::add_attention(EnginePassTime& time, const EngineLoad& load) const {
  const auto layers = static_cast<double>(model().facts.layers);
  if (load.decoding > 0) {
    const MemoryRate& r = rates_.kernels.memory[static_cast<std::size_t>(KernelKind::elementwise)];
    time.attention += layers * rates_.kernels.attention.seconds +
                      load.decoding * cache_bytes(load.context) / (r.bandwidth * peaks_.memory);
  }
  if (load.prompt_tokens <= 0) return;
  const ModelRun run = run_of(1, whole(load.prompt_length), std::llround(load.prompt_past));
  double one = 0;
  for (const SegmentRun& s : run.segments)
    for (const Kernel& k : s.forward.forward_kernels)
      if (k.kind == KernelKind::attention)
        one += static_cast<double>(s.segment->repeat) * kernel_seconds(k, peaks_, rates_.kernels);
  time.attention += one * load.prompt_tokens / load.prompt_length;
}

EnginePassTime ServedNetwork::time_of(const EngineLoad& load) const {
  EnginePassTime time;
  if (peaks_.half <= 0 || peaks_.memory <= 0) return time;
  add_body(time, run_of(padded(load.decoding + load.prompt_tokens), 1, 0));
  const double ended = load.prompt_length > 0 ? load.prompt_tokens / load.prompt_length : 0;
  add_head(time, load.decoding + ended);
  add_attention(time, load);
  time.host = plan_.workload.generation.engine->engine->pass_seconds;
  return time;
}

}  // namespace shardplan
