#include "serving/engine_pass.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "lowering/inference/generate.h"
#include "lowering/inference/pass.h"
#include "parallel/groups.h"
#include "rollout/engine.h"
#include "rollout/graphs.h"
#include "rollout/packed_products.h"
#include "serving/exchange.h"
#include "serving/expert_products.h"

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

/// Rates of kernels that a graph starts one after the other. A training step leaves the GPU pauses
/// in which its clock recovers, and its products are faster than the same ones back to back
/// (ProductRates::burst). A pass leaves none, and its attention is no kernel of PyTorch's.
TimeRates rates_of_passes(TimeRates rates) {
  rates.kernels.product.burst = 1;
  rates.kernels.attention = rates.kernels.engine_forward;
  return rates;
}

/// Tensor cores at a share of their rates.
GpuPeaks slower(GpuPeaks peaks, double share) {
  for (double* rate : {&peaks.half, &peaks.fp8, &peaks.fp4, &peaks.int8}) *rate *= share;
  return peaks;
}

/// The plan of one GPU of the engine: its share of the layers, a token of each sequence.
Plan plan_of_engine(const Plan& plan) {
  Plan own = engine_share(plan, *plan.workload.generation.engine);
  own.workload.micro_batch = 1;
  own.workload.sequence_length = 1;
  own.workload.generation.new_tokens = 0;
  return own;
}

/// Bytes of operands and result of all calls. Elements of the weight may have fewer bits.
double product_bytes(const Kernel& p, double weight_bytes) {
  const auto m = static_cast<double>(p.m), n = static_cast<double>(p.n),
             k = static_cast<double>(p.k);
  return static_cast<double>(p.batch) * p.calls *
         ((m * k + m * n) * static_cast<double>(size_of(DType::bf16)) + k * n * weight_bytes);
}

/// Of one weight, or of as many as there are experts.
bool of_experts(const Kernel& product) {
  return product.batch > 1;
}

/// In front of a product: its operands are made from the last product's result, and read and
/// written once on the way, unless they are gathered: the tokens' own rows, read where they are.
/// Of experts that are divided among `ranks` the rows of all go through these kernels (vllm/
/// model_executor/layers/fused_moe/fused_moe.py: caches of M top_k rows).
double bytes_between(const Kernel& before, const Kernel& after, bool gathered, std::int64_t ranks) {
  const auto rows = [&](const Kernel& p) {
    return static_cast<double>(p.m * p.batch * (of_experts(p) ? ranks : 1));
  };
  const double read = rows(before) * static_cast<double>(before.n);
  const double made = gathered ? 0 : rows(after) * static_cast<double>(after.k);
  return static_cast<double>(size_of(DType::bf16)) * (read + made);
}

/// Keys that a query of a prompt sees in the mean, of `past` and the prompt's own, in a layer that
/// keeps a window of them: engines' kernels leave out blocks that are not in it.
double keys_in_window(double window, double past, double own) {
  const double filling = std::clamp(window - past, 0.0, own);  // queries with fewer keys than that
  return (filling * (past + filling / 2) + (own - filling) * window) / own;
}

/// Attention that the class writes out as two products, which engines run as one kernel: vLLM's
/// and SGLang's take sinks and slopes along (vllm/v1/attention/backends/flash_attn.py,
/// triton_attn.py). No kernel where the layer has none.
std::optional<Kernel> written_attention(const Graph& graph, const Kernel& like) {
  for (const Op& op : graph.ops()) {
    if (op.kind != OpKind::matmul || op.work.scale != Scale::context_scores) continue;
    const Extent scores = graph.value(op.out).extent;
    if (scores.scale != Scale::context_scores || scores.per <= 0) continue;
    Kernel attention = like;
    attention.kind = KernelKind::attention;
    attention.batch = scores.per;
    attention.k = op.work.per / scores.per;
    return attention;
  }
  return std::nullopt;
}

/// Stored in fewer bits than products take, and widened within them.
bool few_bits(Quantization stored) {
  return stored != Quantization::none && !format_of(stored).rate && !format_of(stored).widened;
}

/// Experts whose rows a pass has: each of its rows goes to some, in the mean to all alike. The
/// weights of the others are not read.
Kernel of_experts_hit(Kernel product, double filled) {
  if (!of_experts(product)) return product;
  const auto experts = static_cast<double>(product.batch);
  const double rows = filled * static_cast<double>(product.m) * experts;
  product.batch = whole(experts * (1 - std::pow(1 - 1 / experts, rows)));
  product.m = padded(rows / static_cast<double>(product.batch));
  return product;
}

/// GPUs among which the engine's experts are divided whole.
std::int64_t experts_divided(const RolloutEngine& engine) {
  return engine.expert_parallel == engine.tensor_parallel ? engine.tensor_parallel : 1;
}

/// Experts whole in place of their columns and rows. All GPUs have all tokens, compute what goes to
/// their own experts and sum the results up, as they sum up parts (vllm/model_executor/layers/
/// fused_moe/layer.py with one data-parallel rank): the next layer waits for the slowest.
void divide_experts(PackedProducts& products, ExpertProduct& experts, std::int64_t ranks) {
  if (experts.experts <= 0) return;
  const LayerExperts own = experts_of_slowest(experts, static_cast<double>(ranks), experts.tokens);
  bool first = true;
  for (Kernel& product : products.kernels) {
    if (!of_experts(product)) continue;
    product = of_whole_experts(product, ranks, std::exchange(first, false));
  }
  static_cast<LayerExperts&>(experts) = own;
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
    : plan_(plan_of_engine(plan)),
      share_(model, plan_),
      rates_(rates_of_passes(rates)),
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
  return static_cast<double>(engine_cache_bytes(model(), plan)) / static_cast<double>(kSequences);
}

/// A format that tensor cores take multiplies at its own rate; of another the weights are read in
/// their bits and widened within the product.
double ServedNetwork::product_seconds(const Kernel& product, bool in_blocks) const {
  const Quantization stored = plan_.workload.generation.weights;
  const double experts = plan_.workload.generation.engine->engine->expert_rate;
  const GpuPeaks peaks = of_experts(product) ? slower(peaks_, experts) : peaks_;
  const NumberFormat& format = format_of(stored);
  if (!in_blocks || stored == Quantization::none || (format.of_experts && !of_experts(product)))
    return kernel_seconds(product, peaks, rates_.kernels);
  Kernel narrow = product;
  if (format.rate == PeakRate::fp8 && peaks_.fp8 > 0) {
    narrow.type = DType::e4m3;
    return kernel_seconds(narrow, peaks, rates_.kernels);
  }
  if (format.rate == PeakRate::int8 && peaks_.int8 > 0) {
    narrow.type = DType::i8;
    return kernel_seconds(narrow, peaks, rates_.kernels);
  }
  GpuPeaks computing = peaks;
  computing.memory = peaks_.memory * 1e3;  // what it computes takes as long as it does
  const double moved = product_bytes(product, static_cast<double>(format.bits) / 8);
  return std::max(
      kernel_seconds(product, computing, rates_.kernels),
      rates_.kernels.product.seconds + moved / (rates_.kernels.product.memory * peaks_.memory));
}

/// By the engine's own kernel, where its tiles are known and take what the weights are stored in.
/// `asked`: all but the product's own sizes.
std::optional<double> ServedNetwork::tiled_seconds(const Kernel& product, bool in_blocks,
                                                   ExpertProduct asked) const {
  const EngineDescription& engine = *plan_.workload.generation.engine->engine;
  const ExpertKernel& kernel = engine.experts;
  const Quantization stored = in_blocks ? plan_.workload.generation.weights : Quantization::none;
  if (!of_experts(product)) return std::nullopt;
  asked.n = static_cast<double>(product.n);
  asked.k = static_cast<double>(product.k);
  if (few_bits(stored) && engine.widened_experts.memory_share > 0) {
    asked.bytes =
        static_cast<double>(bytes_in(format_of(stored), product.n * product.k, product.n)) /
        (asked.n * asked.k);
    return widened_expert_seconds(asked, engine.widened_experts, peaks_.half, peaks_.memory);
  }
  if (kernel.memory_share <= 0) return std::nullopt;
  const bool narrow = format_of(stored).rate == PeakRate::fp8 && peaks_.fp8 > 0;
  if (!narrow && stored != Quantization::none) return std::nullopt;
  asked.bytes = static_cast<double>(size_of(narrow ? DType::e4m3 : DType::bf16));
  return expert_seconds(asked, kernel, narrow ? peaks_.fp8 : peaks_.half, peaks_.memory);
}

bool ServedNetwork::quantizes() const {
  const std::optional<PeakRate> rate = format_of(plan_.workload.generation.weights).rate;
  const bool narrow =
      (rate == PeakRate::fp8 && peaks_.fp8 > 0) || (rate == PeakRate::int8 && peaks_.int8 > 0);
  return narrow && plan_.workload.generation.engine->engine->quantizes_apart;
}

/// `rows`: of the pass, those that fill it up left out.
void ServedNetwork::add_products(EnginePassTime& time, const SegmentRun& segment,
                                 double rows) const {
  PackedProducts products = packed_products(segment);
  ExpertProduct experts{experts_of(*segment.segment, model())};
  experts.tokens = rows;
  const std::int64_t ranks = experts_divided(*plan_.workload.generation.engine);
  if (ranks > 1) divide_experts(products, experts, ranks);
  const double wide = 1 - plan_.workload.generation.engine->quantized_share;
  const MemoryRate& fused =
      rates_.kernels.memory[static_cast<std::size_t>(KernelKind::triton_reduction)];
  for (std::size_t i = 0; i < products.kernels.size(); ++i) {
    const Kernel& p = products.kernels[i];
    // The first of a layer follows the last of the layer before.
    const Kernel& before = products.kernels[i == 0 ? products.kernels.size() - 1 : i - 1];
    experts.gathered = !of_experts(before);
    const auto tiled = tiled_seconds(p, products.in_blocks, experts);
    const double bytes = bytes_between(before, p, tiled && experts.gathered, ranks);
    const double share = bytes < rates_.kernels.cache_bytes ? fused.cached : fused.bandwidth;
    const Kernel hit = of_experts_hit(p, rows / static_cast<double>(padded(rows)));
    double seconds = tiled ? *tiled : product_seconds(hit, products.in_blocks);
    if (products.in_blocks && wide > 0) seconds += wide * (product_seconds(hit, false) - seconds);
    time.products += products.repeat * seconds;
    time.between +=
        products.repeat * products.before[i] * (fused.seconds + bytes / (share * peaks_.memory));
    // What it moves is what the kernel before it moves less by, within what was measured.
    if (products.in_blocks && quantizes()) time.between += products.repeat * fused.seconds;
  }
}

/// What experts that all tokens take make is added to the routed ones' results before these are
/// summed over the GPUs (fused_moe/runner/moe_runner.py, _maybe_reduce_final_output): attention and
/// experts sum up once each.
void ServedNetwork::add_exchanges(EnginePassTime& time, const SegmentRun& segment) const {
  const EngineDescription& engine = *plan_.workload.generation.engine->engine;
  const auto groups = group_shapes(plan_);
  Program exchanges;
  ProgramBuilder b(exchanges);
  for (const TapeExchange& e : segment.forward.exchanges) detail::emit_exchange(b, e);
  const auto sums = [](const Event& e) {
    return e.kind == Event::Kind::collective && e.collective == Collective::all_reduce;
  };
  std::int64_t left = std::ranges::count_if(exchanges.events, sums);
  if (experts_of(*segment.segment, model()).shared) left = std::min<std::int64_t>(left, 2);
  for (const Event& e : exchanges.events) {
    if (e.kind != Event::Kind::collective || (sums(e) && left-- <= 0)) continue;
    time.exchanges += static_cast<double>(segment.segment->repeat) *
                      engine_exchange_seconds(e, groups[static_cast<std::size_t>(e.group)],
                                              plan_.cluster, rates_.links, engine);
  }
}

void ServedNetwork::add_body(EnginePassTime& time, double rows) const {
  const ModelRun run = run_of(padded(rows), 1, 0);
  for (std::size_t i = 0; i + 1 < run.segments.size(); ++i) {
    add_products(time, run.segments[i], rows);
    add_exchanges(time, run.segments[i]);
  }
}

/// The head's rows are sequences that get a token. Each GPU has a part of their logits, which are
/// put together (vllm/model_executor/layers/logits_processor.py, _gather_logits; SGLang's and
/// TensorRT-LLM's heads do the same). The sampler reads and writes a row of the
/// vocabulary in fp32 for each of its passes.
void ServedNetwork::add_head(EnginePassTime& time, double rows) const {
  const ModelRun run = run_of(padded(rows), 1, 0);
  add_products(time, run.segments.back(), rows);
  add_exchanges(time, run.segments.back());
  const MemoryRate& r =
      rates_.kernels.memory[static_cast<std::size_t>(KernelKind::triton_reduction)];
  constexpr double kFloat = 4;
  const auto passes = static_cast<double>(plan_.workload.generation.engine->engine->sampler_rows);
  const double bytes = passes * 2 * kFloat * rows * static_cast<double>(model().facts.vocabulary);
  time.between += passes * r.seconds + bytes / (r.bandwidth * peaks_.memory);
}

/// What is read more than once comes from the GPU's cache, of which a multiprocessor reads so many
/// bytes a clock: memory.elementwise.cached of the H200 that it was fitted on, 1.496 of 4.8 TB/s,
/// over its 132 multiprocessors at 1.98 GHz.
double ServedNetwork::again_seconds(double bytes) const {
  constexpr double kBytesAClock = 27.5;
  const RolloutEngine& engine = *plan_.workload.generation.engine;
  const ModelFacts& facts = model().facts;
  if (engine.grouped_reads || facts.key_value_heads <= 0) return 0;
  const double times =
      static_cast<double>(facts.attention_heads) / static_cast<double>(facts.key_value_heads);
  const auto lanes = static_cast<double>(plan_.cluster.gpu.abilities.fp32_lanes);
  const double clocks = peaks_.fp32 / (2 * lanes);  // of all multiprocessors, a second
  return clocks > 0 ? (times - 1) * bytes / (kBytesAClock * clocks) : 0;
}

/// Sequences that decode read their keys and values once; prompts are computed as in a pass over
/// them, and read what they share.
void ServedNetwork::add_attention(EnginePassTime& time, const EngineLoad& load) const {
  const auto layers = static_cast<double>(model().facts.layers);
  if (load.decoding > 0) {
    const MemoryRate& r = rates_.kernels.memory[static_cast<std::size_t>(KernelKind::elementwise)];
    const double bytes = load.decoding * cache_bytes(load.context);
    time.attention += layers * rates_.kernels.attention.seconds +
                      bytes / (r.bandwidth * peaks_.memory) + again_seconds(bytes);
  }
  if (load.prompt_tokens <= 0) return;
  time.attention += prompt_attention(load) * load.prompt_tokens / load.prompt_length;
}

double ServedNetwork::prompt_attention(const EngineLoad& load) const {
  const std::int64_t own = whole(load.prompt_length);
  const std::int64_t past = std::llround(load.prompt_past);
  const ModelRun run = run_of(1, own, past);
  double seconds = 0;
  for (const SegmentRun& s : run.segments) {
    const auto repeat = static_cast<double>(s.segment->repeat);
    const auto window = static_cast<double>(window_of(*s.segment));
    const auto add = [&](Kernel k) {
      if (window > 0) {
        k.n = whole(keys_in_window(window, load.prompt_past, load.prompt_length));
        k.causal = k.masked = false;
      }
      seconds += repeat * kernel_seconds(k, peaks_, rates_.kernels);
    };
    for (const Kernel& k : s.forward.forward_kernels)
      if (k.kind == KernelKind::attention) add(k);
    const Kernel like{
        .type = DType::bf16, .causal = past == 0 && own > 1, .m = own, .n = past + own};
    if (const auto written = written_attention(s.segment->graph, like)) add(*written);
  }
  return seconds;
}

/// Starting the layers of a pass that no whole graph starts, as those of passes with prompts. Up to
/// the largest graph they are cut at attention; above, each kernel is started, and experts are code
/// of the engine's own between what is compiled (vllm/model_executor/layers/fused_moe/runner/
/// moe_runner.py, _moe_forward).
double ServedNetwork::starting(const EngineLoad& load) const {
  const RolloutEngine& engine = *plan_.workload.generation.engine;
  const EngineHost& host = engine.engine->host;
  const double tokens = load.decoding + load.prompt_tokens;
  const bool graphs = engine.cuda_graphs;
  if (graphs && load.prompt_tokens <= 0 && tokens <= static_cast<double>(most_in_graph(engine)))
    return 0;
  const auto layers = static_cast<double>(model().facts.layers);
  if (graphs && tokens <= static_cast<double>(most_in_cut_graph(engine)))
    return layers * host.cut_seconds;
  double seconds = layers * (graphs ? host.layer_seconds : host.eager_seconds);
  for (const Segment& segment : model().segments) {
    const LayerExperts experts = experts_of(segment, model());
    if (experts.experts <= 0) continue;
    const double own = host.experts_seconds + (experts.shared ? host.shared_seconds : 0) +
                       (model().facts.grouped_experts ? host.grouped_seconds : 0);
    seconds += static_cast<double>(segment.repeat) * own;
  }
  return seconds;
}

/// Log-probabilities, where they are asked for.
double ServedNetwork::scoring(const EngineLoad& load) const {
  const RolloutEngine& engine = *plan_.workload.generation.engine;
  const EngineHost& host = engine.engine->host;
  if (!engine.scores) return 0;
  return std::min(load.decoding * host.scored_seconds, host.scored_most_seconds);
}

/// A pass that a host starts takes as long as the host, whichever of two processes takes longer:
/// the one that starts the pass with its layers and takes its tokens in, or the one that answers.
double ServedNetwork::waited_for(const EngineLoad& load) const {
  const RolloutEngine& engine = *plan_.workload.generation.engine;
  const EngineHost& host = engine.engine->host;
  return std::max(host.pass_seconds + scoring(load) + starting(load),
                  load.decoding * host.sequence_seconds);
}

EnginePassTime ServedNetwork::time_of(const EngineLoad& load) const {
  EnginePassTime time;
  if (peaks_.half <= 0 || peaks_.memory <= 0) return time;
  add_body(time, load.decoding + load.prompt_tokens);
  const double ended = load.prompt_length > 0 ? load.prompt_tokens / load.prompt_length : 0;
  add_head(time, load.decoding + ended);
  add_attention(time, load);
  const RolloutEngine& engine = *plan_.workload.generation.engine;
  const double between = runner_of(engine, model()).pass_seconds;
  const EngineHost& host = engine.engine->host;
  const double turn = std::max(between, host.turn_seconds) +
                      load.decoding * host.turn_sequence_seconds + scoring(load);
  time.host = engine.in_turns() ? turn / static_cast<double>(engine.passes_of_turn)
                                : std::max(between, waited_for(load) - time.seconds());
  return time;
}

}  // namespace shardplan
