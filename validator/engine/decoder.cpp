#include "engine/decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "engine/block.h"
#include "engine/loss_rows.h"
#include "engine/mlp/routing.h"
#include "engine/offload/host_activations.h"
#include "engine/rotary_table.h"
#include "engine/self_attention.h"
#include "engine/tensor_ranks.h"
#include "model/decoder_layout.h"
#include "model/tensor_share.h"

namespace shardplan::validator {
namespace {

Heads heads_of(const DecoderSpec& spec, const DecoderRun& run) {
  return {run.micro_batch, run.context.places(run.sequence).sequence, spec.query_heads,
          spec.key_value_heads, spec.head_dim};
}

class Decoder final : public Network {
 public:
  Decoder(const DecoderSpec& spec, const DecoderRun& run)
      : spec_(share_of(spec, run.share, run.experts)),
        run_(run),
        places_(run.context.places(run.sequence)),
        layout_(stage_layout(lay_out_share(spec, run.share, run.experts), run.stage)),
        block_(spec_, layout_, heads_of(spec_, run), run.dtype, run.fp8, run.products_again,
               make_mlp()) {}

  const std::vector<Unit>& units() const override { return layout_.units; }
  bool tied() const override { return spec_.tied; }
  std::int64_t rows() const override { return run_.micro_batch * places_.sequence; }

  StepShapes shapes() const override {
    StepShapes s{.dtype = run_.dtype, .heads = heads_of(spec_, run_)};
    s.rows = rows();
    s.hidden = spec_.hidden;
    s.inner = spec_.up_width();
    s.padded_vocabulary = spec_.padded_vocabulary();
    s.logit_rows = logit_rows(rows(), s.padded_vocabulary, run_.dtype);
    for (const Unit& unit : units()) s.largest_unit = std::max(s.largest_unit, unit.numel);
    return s;
  }

  Tensor dropped() const override { return routing_ ? routing_->dropped() : Tensor{}; }
  double idle_experts() const override { return routing_ ? routing_->idle_experts() : 0; }
  Tensor widened() const override { return widened_; }

  void prepare(Runtime& rt, int slots) override {
    ranks_.emplace(rt);
    if (spec_.experts)
      routing_.emplace(rt, spec_, slots_of_experts(), run_.dtype, run_.capacity_factor > 0);
    if (run_.keeps_on_host) prepare_host(rt);
    attention_ = make_self_attention(rt, heads_of(spec_, run_), run_.dtype);
    block_.attend_with(*attention_);
    slots_.resize(index(slots));
    if (const std::int64_t elements = largest_quantized(units()); elements > 0)
      widened_ = rt.arena.allocate("widened", Category::workspace, run_.dtype, {elements});
    fp8_ = allocate_fp8(rt.arena, run_.fp8, spec_, rows(),
                        slots_of_experts().most(spec_.expert_share));
    const auto ids = [&](const char* name, std::int64_t micro_batches) {
      return rt.arena.allocate(name, Category::other, DType::i32, {micro_batches * rows()});
    };
    if (run_.stage.first()) tokens_ = ids("tokens", slots);
    if (run_.stage.last()) targets_ = ids("targets", 1);
    if (!spec_.rotary) return;
    table_ = rt.arena.allocate("rotary_table", Category::other, statistic_type(run_.dtype),
                               {places_.sequence, spec_.head_dim});
    const std::vector<double> values = rotary_table(*spec_.rotary, places_, spec_.head_dim);
    if (table_.dtype == DType::f64) {
      rt.device.upload(table_, std::as_bytes(std::span(values)));
    } else {
      const std::vector<float> narrow(values.begin(), values.end());
      rt.device.upload(table_, std::as_bytes(std::span(narrow)));
    }
  }

  void begin_step(Runtime& rt) override {
    Arena& arena = rt.arena;
    if (run_.keep == Keep::products) shared_ = block_.allocate_shared(arena);
    for (std::size_t s = 0; s < slots_.size(); ++s) allocate_slot(arena, s);
    if (run_.stage.last()) allocate_head(arena);
    if (ranks_->divided()) ranks_->lend(all_rows(arena, "values"), {});
    attention_->begin_step(arena);
    if (routing_) routing_->begin_step(rt);
  }

  void forward(Runtime& rt, Weights& weights, Gradients& gradients, const Pass& pass,
               const MicroBatch& micro, const Tensor& loss) override {
    const Slot& slot = slots_[index(pass.slot)];
    if (routing_) routing_->begin_micro_batch(rt.device, micro);
    if (begins(pass)) {
      upload_tokens(rt.device, micro.batch.tokens, tokens_of(pass));
      weights.prefetch(layout_.embedding_unit);
      embed(rt, weights, pass);
    }
    {
      // Without checkpointing what blocks keep stays for the backward pass.
      std::optional<Arena::Scope> passing;
      if (any_again()) passing.emplace(rt.arena);
      const Residual last = run_blocks(rt, weights, pass);
      if (ends(pass)) {
        normalize(rt, weights, last);
      } else {
        rt.device.add(slot.branch, last.x);  // what the next stage is sent
      }
    }
    if (!ends(pass)) return;
    rt.device.upload(targets_, std::as_bytes(std::span(micro.batch.targets)));
    head(rt, weights, gradients, pass, micro, loss);
  }

  void backward(Runtime& rt, Weights& weights, Gradients& gradients, const Pass& pass) override {
    const Arena::Scope scope(rt.arena);
    const BlockScratch scratch = block_.allocate_scratch(rt.arena);
    if (ranks_->divided()) ranks_->lend(ranks_->values(), all_rows(rt.arena, "gradients"));
    attention_->begin_backward(rt.arena);
    BlockActivations again;
    Tensor branch;
    if (any_again()) {
      again = block_.allocate(rt.arena, "repeated", Keep::everything, {});
      branch = residual(rt.arena, "repeated.branch");
    }
    const Slot& slot = slots_[index(pass.slot)];
    for (std::int64_t i = blocks_of_chunk() - 1; i >= 0; --i) {
      const int u = unit_of(pass, i);
      const Tensor w = weights.acquire(u);
      BlockParts parts = parts_of(weights, pass, i);
      if (i > 0) prefetch_block(weights, pass, i - 1);
      if (on_host_) on_host_->begin_backward(i);
      const BlockActivations& kept = slot.blocks[static_cast<std::size_t>(i)];
      if (keep_of(i) == Keep::inputs) {
        again.x = kept.x;
        block_.repeat(*ranks_, units()[index(u)], w, again, branch, table_, parts);
      } else if (keep_of(i) == Keep::products) {
        block_.renew(*ranks_, units()[index(u)], w, kept, shared_.branch, table_, parts);
      }
      const BlockActivations& a = keep_of(i) == Keep::inputs ? again : kept;
      const OpenGradient gradient = gradients.open(u);
      for_each_part(pass, i, [&](int part) {
        parts.unit(units()[index(part)].kind).gradient = gradients.open(part);
      });
      block_.backward(*ranks_, units()[index(u)], w, gradient, a, scratch, slot.branch, table_,
                      parts);
      if (on_host_) on_host_->end_backward(i);
      for_each_unit(pass, i, [&](int unit) {
        gradients.close(unit);
        weights.release(unit);
      });
      if (i > 1) expect_block(weights, pass, i - 2);
    }
    if (begins(pass)) embed_backward(rt, gradients, pass);
  }

  Tensor given(const Pass& pass) const override {
    const Slot& slot = slots_[index(pass.slot)];
    return pass.kind == Pass::Kind::forward ? slot.blocks.front().x : slot.branch;
  }
  Tensor made(const Pass& pass) const override { return slots_[index(pass.slot)].branch; }

 private:
  /// What a micro-batch keeps in a chunk until its backward pass.
  struct Slot {
    std::vector<BlockActivations> blocks;
    /// [part, hidden]: what is to be added to the residual; then what the next stage is sent, and
    /// then the gradient of that.
    Tensor branch;
  };

  static std::size_t index(int i) { return static_cast<std::size_t>(i); }
  const Unit& embedding() const { return units()[index(layout_.embedding_unit)]; }
  const Unit& head_unit() const { return units()[index(layout_.head_unit)]; }

  bool begins(const Pass& pass) const { return run_.stage.first() && pass.chunk == 0; }
  bool ends(const Pass& pass) const {
    return run_.stage.last() && pass.chunk == run_.stage.chunks - 1;
  }
  std::int64_t blocks_of_chunk() const {
    return spec_.layers / (std::int64_t{run_.stage.stages} * run_.stage.chunks);
  }
  /// The unit of a chunk's i-th block.
  int unit_of(const Pass& pass, std::int64_t i) const {
    return layout_.block_unit(pass.chunk * blocks_of_chunk() + i);
  }
  /// The units of what it has beside: experts, matrices of 4 bits, adapters.
  template <typename Visit>
  void for_each_part(const Pass& pass, std::int64_t i, Visit&& visit, int first = 1) const {
    const int own = unit_of(pass, i);
    for (int part = own + first; part < own + layout_.units_of_block(); ++part) visit(part);
  }
  /// Those and its own; after the last block the head's.
  template <typename Visit>
  void for_each_unit(const Pass& pass, std::int64_t i, Visit&& visit) const {
    if (i < blocks_of_chunk()) return for_each_part(pass, i, visit, 0);
    if (i == blocks_of_chunk() && ends(pass)) visit(layout_.head_unit);
  }
  void prefetch_block(Weights& weights, const Pass& pass, std::int64_t i) const {
    for_each_unit(pass, i, [&](int unit) { weights.prefetch(unit); });
  }
  void expect_block(Weights& weights, const Pass& pass, std::int64_t i) const {
    for_each_unit(pass, i, [&](int unit) { weights.expect(unit); });
  }
  BlockParts parts_of(Weights& weights, const Pass& pass, std::int64_t i) const {
    BlockParts parts;
    parts.fp8 = fp8_;
    if (routing_) parts.experts = {{}, &routing_->ranks(), &routing_->tally()};
    parts.quantized.room = widened_;
    if (spec_.lora)
      parts.adapters = {.parameters = &block_.adapters(), .lowest = begins(pass) && i == 0};
    for_each_part(pass, i, [&](int part) {
      const Unit& unit = units()[index(part)];
      parts.unit(unit.kind) = {&unit, weights.acquire(part), {}};
    });
    return parts;
  }
  Tensor tokens_of(const Pass& pass) const { return tokens_.slice(pass.slot * rows(), rows()); }

  /// Rows that this rank has between the products.
  std::int64_t part() const { return rows() / spec_.share.ranks; }

  Tensor residual(Arena& arena, std::string name) const {
    return arena.allocate(std::move(name), Category::activations, run_.dtype,
                          {part(), spec_.hidden});
  }
  Tensor all_rows(Arena& arena, const std::string& name) const {
    return arena.allocate("exchanged." + name, Category::communication_buffers, run_.dtype,
                          {rows(), spec_.hidden});
  }

  ExpertSlots slots_of_experts() const {
    if (!spec_.experts) return {};
    return {part(), expert_capacity(*spec_.experts, run_), slot_multiple(run_.fp8)};
  }

  std::unique_ptr<Mlp> make_mlp() const {
    if (!spec_.experts) return make_dense_mlp(spec_, rows(), run_.dtype, run_.products_again);
    return make_expert_mlp(spec_, layout_.block.router, layout_.experts, slots_of_experts(),
                           run_.dtype, run_.products_again);
  }

  /// Tokens of other ranks' rows of the table become -1.
  void upload_tokens(Backend& device, std::span<const std::int32_t> tokens,
                     const Tensor& to) const {
    std::vector<std::int32_t> here(tokens.begin(), tokens.end());
    for (std::int32_t& token : here) {
      const std::int64_t row = token - spec_.first_token();
      token = row >= 0 && row < spec_.padded_vocabulary() ? static_cast<std::int32_t>(row) : -1;
    }
    device.upload(to, std::as_bytes(std::span(here)));
  }

  /// What the i-th block of a chunk keeps; with blocks that are done again there is one chunk.
  Keep keep_of(std::int64_t i) const {
    const std::int64_t place = run_.stage.stage * blocks_of_chunk() + i;
    return run_.again && run_.again->has(place) ? Keep::inputs : run_.keep;
  }
  bool any_again() const { return run_.again || run_.keep == Keep::inputs; }
  BlockActivations allocate_kept(Arena& arena, const std::string& name, std::int64_t i) const {
    BlockActivations kept;
    const Keep keep = keep_of(i);
    if (keep != Keep::inputs) kept = block_.allocate(arena, name, keep, shared_);
    kept.x = residual(arena, name + ".x");
    return kept;
  }

  void prepare_host(Runtime& rt) {
    Arena one_block(0, std::numeric_limits<std::int64_t>::max());
    allocate_kept(one_block, "block", 0);
    on_host_.emplace(rt, blocks_of_chunk(), one_block.live_bytes());
  }

  void allocate_slot(Arena& arena, std::size_t s) {
    Slot slot;
    for (std::int64_t i = 0; i < blocks_of_chunk(); ++i) {
      if (on_host_ && i >= HostActivations::kPlaces) {
        slot.blocks.push_back(in_the_place_of(at(slot.blocks, i - HostActivations::kPlaces)));
        continue;
      }
      const std::size_t before = arena.live().size();
      slot.blocks.push_back(allocate_kept(arena, fmt::format("slots.{}.blocks.{}", s, i), i));
      if (on_host_) on_host_->lend(i, arena.all_since(before));
    }
    slot.branch = residual(arena, fmt::format("slots.{}.branch", s));
    slots_[s] = std::move(slot);
  }

  void allocate_head(Arena& arena) {
    last_ = residual(arena, "head.x");
    normed_ = residual(arena, "head.norm");
    const DType statistic = statistic_type(run_.dtype);
    const auto row_statistic = [&](const char* name) {
      return arena.allocate(name, Category::activations, statistic, {part()});
    };
    if (spec_.norm == NormKind::layer) mean_ = row_statistic("head.mean");
    rstd_ = row_statistic("head.rstd");
    losses_ = arena.allocate("losses", Category::logits_and_loss, statistic, {rows()});
  }

  void embed(Runtime& rt, Weights& weights, const Pass& pass) {
    const Tensor& x = slots_[index(pass.slot)].blocks.front().x;
    const Tensor w = weights.acquire(layout_.embedding_unit);
    weights.prefetch(layout_.block_unit(0));
    const Tensor addend = ranks_->addend(x, ranks_->values());
    const Tensor positions =
        ranks_->first() ? embedding().parameter(w, layout_.positions) : Tensor{};
    rt.device.embedding_forward(addend, tokens_of(pass), embedding().parameter(w, layout_.tokens),
                                positions, places_);
    ranks_->sum(x, addend);
    weights.release(layout_.embedding_unit);
    expect_block(weights, pass, 1);
  }

  Residual run_blocks(Runtime& rt, Weights& weights, const Pass& pass) {
    const Slot& slot = slots_[index(pass.slot)];
    BlockActivations passing;
    if (any_again()) passing = block_.allocate(rt.arena, "passing", Keep::everything, {});
    Residual residual{slot.blocks.front().x, {}};
    for (std::int64_t i = 0; i < blocks_of_chunk(); ++i) {
      const BlockActivations& kept = slot.blocks[static_cast<std::size_t>(i)];
      BlockActivations a = keep_of(i) == Keep::inputs ? passing : kept;
      a.x = kept.x;
      const int u = unit_of(pass, i);
      const Tensor w = weights.acquire(u);
      const BlockParts parts = parts_of(weights, pass, i);
      prefetch_block(weights, pass, i + 1);
      if (on_host_) on_host_->begin_forward(i);
      block_.forward(*ranks_, units()[index(u)], w, a, residual, slot.branch, table_, parts);
      if (on_host_) on_host_->end_forward(i);
      for_each_unit(pass, i, [&](int unit) { weights.release(unit); });
      expect_block(weights, pass, i + 2);
      residual = {a.mid, slot.branch};
    }
    return residual;
  }

  void normalize(Runtime& rt, Weights& weights, const Residual& in) {
    const Unit& unit = head_unit();
    const Tensor w = weights.acquire(layout_.head_unit);
    rt.device.norm_forward({.kind = spec_.norm,
                            .epsilon = spec_.epsilon,
                            .out = normed_,
                            .mean = mean_,
                            .rstd = rstd_,
                            .sum = last_,
                            .x = in.x,
                            .branch = in.branch,
                            .weight = unit.parameter(w, layout_.norm_weight),
                            .bias = unit.parameter(w, layout_.norm_bias)});
  }

  /// The loss of chunks of rows, and each chunk's way back: logits become their gradient, a chunk's
  /// gradient of the norm's result takes the place of that result.
  void head(Runtime& rt, Weights& weights, Gradients& gradients, const Pass& pass,
            const MicroBatch& micro, const Tensor& loss) {
    const Unit& unit = head_unit();
    const Tensor w = weights.acquire(layout_.head_unit);
    const OpenGradient gradient = gradients.open(layout_.head_unit);
    Tensor weight, dweight;
    bool add = gradient.accumulate;
    if (spec_.tied) {
      open_embedding(rt, gradients);
      weight = embedding().parameter(weights.acquire(layout_.embedding_unit), layout_.tokens);
      dweight = embedding().parameter(dembedding_, layout_.tokens);
      add = true;
    } else {
      weight = unit.parameter(w, layout_.head);
      dweight = unit.parameter(gradient.flat, layout_.head);
    }
    const Tensor normed = ranks_->gather(normed_, ranks_->values());
    {
      const Arena::Scope scope(rt.arena);
      const std::int64_t most = shapes().logit_rows;
      const Tensor logits = rt.arena.allocate("logits", Category::logits_and_loss, run_.dtype,
                                              {most, spec_.padded_vocabulary()});
      const LossRows loss_rows(rt.arena, *ranks_, spec_, run_.dtype, most);
      for (std::int64_t first = 0; first < rows(); first += most) {
        const std::int64_t count = std::min(most, rows() - first);
        const Tensor chunk = logits.row_range(0, count);
        const Tensor x = normed.row_range(first, count);
        rt.device.linear_forward(chunk, x, weight, {});
        loss_rows.compute({.logits = chunk,
                           .losses = losses_.slice(first, count),
                           .targets = targets_.slice(first, count),
                           .gradient_scale = micro.gradient_scale});
        if (!dweight.empty()) rt.device.linear_backward_weight(dweight, chunk, x, add || first > 0);
        rt.device.linear_backward_input(x, chunk, weight);
      }
    }
    ranks_->sum(normed_, normed);
    rt.device.sum(loss, losses_, !micro.first);
    if (routing_) routing_->end_micro_batch(rt, loss);
    // Nothing is left in the branch: the gradient of the residual stream begins there.
    rt.device.norm_backward({.kind = spec_.norm,
                             .dx = slots_[index(pass.slot)].branch,
                             .dweight = unit.parameter(gradient.flat, layout_.norm_weight),
                             .dbias = unit.parameter(gradient.flat, layout_.norm_bias),
                             .accumulate_weights = gradient.accumulate,
                             .dout = normed_,
                             .x = last_,
                             .mean = mean_,
                             .rstd = rstd_,
                             .weight = unit.parameter(w, layout_.norm_weight)});
    gradients.close(layout_.head_unit);
    weights.release(layout_.head_unit);
    if (!spec_.tied) return;
    weights.release(layout_.embedding_unit);
    if (!run_.stage.first()) gradients.close(layout_.embedding_unit);
  }

  /// Rows of the embedding are added to, by the head as well if it is tied: it starts from zero.
  void open_embedding(Runtime& rt, Gradients& gradients) {
    const OpenGradient gradient = gradients.open(layout_.embedding_unit);
    dembedding_ = gradient.flat;
    if (!dembedding_.empty() && !gradient.accumulate) rt.device.zero(dembedding_);
  }

  void embed_backward(Runtime& rt, Gradients& gradients, const Pass& pass) {
    if (embedding().frozen) return;
    if (!spec_.tied || !run_.stage.last()) open_embedding(rt, gradients);
    rt.device.embedding_backward(embedding().parameter(dembedding_, layout_.tokens),
                                 embedding().parameter(dembedding_, layout_.positions),
                                 ranks_->gather(made(pass), ranks_->gradients()), tokens_of(pass),
                                 places_);
    gradients.close(layout_.embedding_unit);
  }

  DecoderSpec spec_;  ///< of this rank's part
  DecoderRun run_;
  RowPlaces places_;  ///< of this rank's rows
  DecoderLayout layout_;
  Block block_;
  std::optional<TensorRanks> ranks_;
  std::optional<Routing> routing_;
  std::optional<HostActivations> on_host_;
  std::unique_ptr<SelfAttention> attention_;
  Tensor widened_;            ///< a matrix of 4 bits, while it is multiplied with
  Tensor tokens_, targets_;   ///< int32: [slots, rows] on the first stage, [rows] on the last
  BlockFp8 fp8_;              ///< without what blocks keep
  Tensor table_;              ///< [rows of a sequence, head_dim]
  std::vector<Slot> slots_;   ///< as all below: of the step under way
  SharedActivations shared_;  ///< of all blocks, under Keep::products
  Tensor last_, normed_, mean_, rstd_;  ///< the head's norm: input, result, statistics
  Tensor losses_, dembedding_;          ///< [rows]; the embedding unit's gradient
};

}  // namespace

std::int64_t expert_capacity(const ExpertsSpec& experts, const DecoderRun& run) {
  const std::int64_t rows =
      checked_mul(run.micro_batch, run.context.places(run.sequence).sequence) / run.share.ranks;
  if (run.capacity_factor == 0) return run.experts.ranks > 1 ? rows : 0;
  const auto share = static_cast<double>(checked_mul(rows, experts.per_token)) /
                     static_cast<double>(experts.count);
  const double wanted =
      std::clamp(std::ceil(run.capacity_factor * share), 1.0, static_cast<double>(rows));
  return round_up(static_cast<std::int64_t>(wanted), slot_multiple(run.fp8));
}

std::unique_ptr<Network> make_decoder(const DecoderSpec& spec, const DecoderRun& run) {
  return std::make_unique<Decoder>(spec, run);
}

}  // namespace shardplan::validator
