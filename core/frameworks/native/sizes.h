// What one rank of the native engine allocates, in elements and bytes
// (docs/explanation/validation.md).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/checked.h"
#include "formats/product_recipe.h"
#include "frameworks/native/layout.h"
#include "frameworks/native/stages.h"
#include "plan/group.h"
#include "plan/plan.h"
#include "program/tape.h"

namespace shardplan {

/// Bytes of one tensor of the engine's arena.
inline std::int64_t native_tensor(std::int64_t elements, std::int64_t bytes_each) {
  return round_up(checked_mul(elements, bytes_each), kAllocationUnit);
}

struct Native {
  static constexpr std::int64_t kElements = 64;  ///< parameters and shards start at a multiple
  static constexpr std::int64_t kLogitBytes = std::int64_t{512} << 20;

  Native(const Model& model, const Plan& run, std::int64_t rank)
      : plan(run),
        pipeline(native_stage(run, rank)),
        layout(layout_of_stage(native_layout(model, run.parallel), pipeline)),
        stage(run.framework.native.zero_stage),
        world(run.replicas()),
        tensor(run.parallel.tensor),
        experts(run.parallel.expert),
        context(run.parallel.context),
        context_rank(rank / tensor % context),
        sequence(run.workload.sequence_length / context),
        rows(checked_mul(run.workload.micro_batch, layout.decoder ? sequence : 1)),
        width(size_of(run.precision.params)),
        offloads(run.framework.native.states_on_host()),
        states_on_nvme(run.framework.native.states_on_nvme()),
        parameters_on_host(run.framework.native.parameters_on_host()),
        parameters_on_nvme(run.framework.native.offload_param == OffloadDevice::nvme),
        delayed(run.framework.native.delayed_update),
        sends_kept(run.checkpoint_share.offload) {}

  const Plan& plan;
  NativeStage pipeline;
  NativeLayout layout;   ///< of the rank's stage
  std::int64_t stage;    ///< ZeRO's
  std::int64_t world;    ///< ranks with other rows of samples, which ZeRO divides over
  std::int64_t tensor;   ///< ranks that share each layer
  std::int64_t experts;  ///< ranks that divide the experts of each layer
  std::int64_t context;  ///< ranks that share each sequence
  std::int64_t context_rank;
  std::int64_t sequence;    ///< rows of a sequence that the rank has
  std::int64_t rows;        ///< of a micro-batch
  std::int64_t width;       ///< bytes of a parameter, and of everything that is computed with it
  bool offloads;            ///< masters and moments are updated on the host
  bool states_on_nvme;      ///< and kept in a file
  bool parameters_on_host;  ///< the shards of the parameters are there, or in the file
  bool parameters_on_nvme;  ///< in the file
  bool delayed;             ///< a step is updated beside the next one
  bool sends_kept;          ///< what blocks keep waits on the host for the backward pass

  std::int64_t parts(const NativeUnit& u) const {
    if (stage == 0 || (u.frozen && stage < 3)) return 1;
    return u.experts ? world * tensor / experts : world;
  }
  /// The ranks that have the same parameters of a unit.
  Group group_of(const NativeUnit& u) const {
    return u.experts && (experts > 1 || tensor > 1) ? Group::expert_data : Group::data;
  }
  std::int64_t padded(const NativeUnit& u) const {
    return round_up(u.elements, kElements * parts(u));
  }
  std::int64_t shard(const NativeUnit& u) const { return padded(u) / parts(u); }

  /// Bytes of an element of a unit.
  std::int64_t width_of(const NativeUnit& u) const { return u.quantized ? 1 : width; }

  /// Bytes of the slots that units take turns in: blocks, and each of what a block has beside,
  /// alternate between two; embedding and head share one unless they are needed together. What is
  /// frozen has no gradient.
  std::vector<std::int64_t> slots(bool gradients) const {
    return slots(gradients,
                 [&](const NativeUnit& u) { return native_tensor(padded(u), width_of(u)); });
  }
  /// Of as many bytes for each unit.
  template <typename BytesOf>
  std::vector<std::int64_t> slots(bool gradients, BytesOf&& bytes) const {
    std::vector<std::int64_t> sizes;
    const auto is_left_out = [&](const NativeUnit& u) { return gradients && u.frozen; };
    std::int64_t index = 0;
    for (const NativeUnit& u : layout.blocks) {
      if (is_left_out(u)) continue;
      for (std::int64_t i = 0; i < std::min<std::int64_t>(u.count, 2); ++i, ++index) {
        const auto slot = static_cast<std::size_t>(index % 2);
        if (sizes.size() <= slot) sizes.push_back(0);
        sizes[slot] = std::max(sizes[slot], bytes(u));
      }
    }
    if (!layout.decoder) return sizes;
    for (const NativeUnit& u :
         {layout.experts, layout.quantized, layout.adapters, layout.expert_adapters})
      for (std::int64_t i = 0; i < std::min<std::int64_t>(u.count, 2); ++i)
        if (!is_left_out(u)) sizes.push_back(bytes(u));
    if (is_left_out(layout.embedding)) return sizes;
    const std::int64_t first = bytes(layout.embedding), last = bytes(layout.head);
    if (layout.tied) {
      sizes.push_back(first);
      sizes.push_back(last);
    } else {
      sizes.push_back(std::max(first, last));
    }
    return sizes;
  }

  /// Rows that a rank has between the products.
  std::int64_t part() const { return rows / tensor; }
  /// Bytes of [rows, columns], and of a row statistic.
  std::int64_t matrix(std::int64_t columns) const {
    return native_tensor(checked_mul(rows, columns), width);
  }
  std::int64_t statistic(std::int64_t per_row = 1) const {
    return native_tensor(checked_mul(rows, per_row), 4);
  }
  /// The same of the residual stream and the norms: [part, hidden].
  std::int64_t stream() const {
    return native_tensor(checked_mul(part(), layout.block.hidden), width);
  }
  std::int64_t stream_statistic() const { return native_tensor(part(), 4); }
  /// What ranks that share each layer exchange of a micro-batch: [rows, hidden]; nothing to
  /// exchange with nobody.
  std::int64_t exchanged() const { return tensor > 1 ? matrix(layout.block.hidden) : 0; }
  /// The numbers about each row of logits that they tell each other: [tensor, logit rows, 3].
  std::int64_t loss_parts() const {
    return tensor > 1 ? native_tensor(checked_mul(3 * tensor, logit_rows()), 4) : 0;
  }

  /// That an expert's slots and their beginnings are: as products in 8 bits want them.
  std::int64_t slot_multiple() const { return narrow() ? recipe().multiple : 1; }
  /// Slots that an expert has of each rank, for its rows between the products; 0: as many as it is
  /// given.
  std::int64_t capacity() const {
    const double factor = plan.framework.native.capacity_factor;
    if (factor == 0) return experts > 1 ? part() : 0;
    const auto share = static_cast<double>(checked_mul(part(), layout.block.per_token)) /
                       static_cast<double>(layout.block.experts);
    const auto slots = static_cast<std::int64_t>(
        std::clamp(std::ceil(factor * share), 1.0, static_cast<double>(part())));
    return round_up(slots, slot_multiple());
  }
  /// Rows that a rank's experts compute with in a layer; 0: one MLP computes with all rows.
  std::int64_t expert_rows() const {
    const NativeBlock& k = layout.block;
    if (capacity() > 0) return checked_mul(k.experts, capacity());
    const std::int64_t multiple = slot_multiple();
    return round_up(checked_mul(part(), k.per_token) + k.experts * (multiple - 1), multiple);
  }
  /// And the most that one of them may have of them: a row goes to an expert once.
  std::int64_t rows_of_expert() const {
    return capacity() > 0 ? checked_mul(capacity(), experts) : part();
  }
  /// Experts of this rank that have rows in a pass.
  std::int64_t experts_at_work() const {
    const std::int64_t here = layout.block.experts / experts;
    if (capacity() > 0) return here;
    return std::max<std::int64_t>(here - std::llround(plan.framework.native.idle_experts), 1);
  }
  /// And what each of those has in the mean. Tokens lie one after the other in no operand but those
  /// of fp8, which the engine pads: a product over any number of them takes what the next multiple
  /// takes.
  std::int64_t mean_rows_of_expert() const {
    constexpr std::int64_t kMultiple = 16;
    if (capacity() > 0) return rows_of_expert();
    return round_up(ceil_div(checked_mul(part(), layout.block.per_token), experts_at_work()),
                    kMultiple);
  }
  /// Whether ranks have a part of such a matrix each: an expert is one rank's.
  bool shares(NativeLinear l) const { return tensor > 1 && !layout.block.of_experts(l); }
  /// Rows that a matrix of a block is multiplied with at the most, and matrices of its kind.
  std::int64_t rows_of(NativeLinear l) const {
    return layout.block.of_experts(l) ? rows_of_expert() : rows;
  }
  std::int64_t matrices_of(NativeLinear l) const {
    return layout.block.of_experts(l) ? layout.block.experts / experts : 1;
  }
  /// And those that a pass multiplies with.
  std::int64_t matrices_at_work(NativeLinear l) const {
    return layout.block.of_experts(l) ? experts_at_work() : 1;
  }
  std::int64_t expert_matrix(std::int64_t columns) const {
    return native_tensor(checked_mul(expert_rows(), columns), width);
  }
  /// What ranks that divide experts have on its way: [expert rows, hidden].
  std::int64_t exchanged_rows() const {
    return experts > 1 ? expert_matrix(layout.block.hidden) : 0;
  }

  /// Whether selective checkpointing makes a product again: each n-th, in the order of a block.
  bool product_again(NativeLinear l) const {
    return plan.checkpointing == Checkpointing::selective_op && plan.checkpoint_share.every > 0 &&
           (static_cast<std::int64_t>(l) + 1) % plan.checkpoint_share.every == 0;
  }
  /// What a block's pass has of a product until its backward pass: of the one behind attention the
  /// sum that it is added to; of an MLP's last nothing, and of experts' what each token is to get.
  std::int64_t made_of(NativeLinear l) const {
    const NativeBlock& k = layout.block;
    switch (l) {
      case NativeLinear::qkv:
        return matrix(k.packed);
      case NativeLinear::out:
        return stream();
      case NativeLinear::up:
        return k.experts == 0 ? matrix(k.up) : expert_matrix(k.up);
      case NativeLinear::down:
        break;
    }
    return k.experts == 0 ? 0 : expert_matrix(k.hidden);
  }
  std::int64_t kept_product(NativeLinear l) const { return product_again(l) ? 0 : made_of(l); }

  /// What an MLP keeps of its products, and what it makes again under selective checkpointing.
  std::int64_t mlp_products() const {
    const NativeBlock& k = layout.block;
    if (k.experts == 0) return kept_product(NativeLinear::up);
    // Logits; weights, choices and slots of each token; the slots' rows and the experts' counts.
    const std::int64_t router = native_tensor(checked_mul(part(), k.experts), width) +
                                3 * native_tensor(checked_mul(part(), k.per_token), 4) +
                                native_tensor(expert_rows(), 4) + native_tensor(k.experts, 4);
    return router + kept_product(NativeLinear::up) + kept_product(NativeLinear::down);
  }
  std::int64_t mlp_renewed() const {
    const NativeBlock& k = layout.block;
    return k.experts == 0 ? matrix(k.inner) : expert_matrix(k.hidden) + expert_matrix(k.inner);
  }
  /// Columns of keys and values: what ranks that share sequences pass on of each row.
  std::int64_t key_columns() const { return layout.block.packed - layout.block.query_width; }
  /// What they have for it: two blocks that take turns, sums of results in fp32, log-sum-exps.
  std::int64_t ring() const {
    const NativeBlock& k = layout.block;
    if (context == 1) return 0;
    return 2 * matrix(key_columns()) + statistic(k.query_width) + statistic(k.query_heads);
  }
  /// And in a backward pass: gradients of two blocks in fp32.
  std::int64_t ring_gradients() const { return context > 1 ? 2 * statistic(key_columns()) : 0; }

  /// How the products of blocks are cast to 8 bits.
  const ProductRecipe& recipe() const { return recipe_of(plan.precision.linear); }
  bool narrow() const { return recipe().cast != OperandCast::none; }
  /// A scale, or one for each of some rows, with its reciprocal: at 16 bytes.
  static std::int64_t scales(std::int64_t count) { return round_up(8 * count, std::int64_t{16}); }
  /// What a block keeps of its matrices from pass to pass: the scales of what each is multiplied
  /// with, and its own.
  std::int64_t kept_scales() const {
    if (!narrow() || recipe().by_rows) return 0;
    const std::int64_t matrices = 2 + 2 * matrices_of(NativeLinear::up);
    return native_tensor(2 * matrices * scales(1), 1);
  }
  /// Of blocks whose matrices have no gradients, under adapters.
  bool frozen() const { return layout.blocks.front().frozen; }
  /// The operands of one product, of the matrix that needs most: forward its input and itself;
  /// backward the result's gradient both ways, and one of the two turned. What is frozen needs that
  /// gradient one way, and itself.
  std::int64_t narrow_operands() const {
    std::int64_t bytes = 0;
    const auto sides = layout.block.sides();
    for (std::size_t l = 0; l < sides.size(); ++l) {
      const auto& [outputs, inputs] = sides[l];
      const std::int64_t read = rows_of(static_cast<NativeLinear>(l));
      const std::int64_t x = checked_mul(read, inputs), w = checked_mul(outputs, inputs);
      const std::int64_t slope = checked_mul(read, outputs);
      bytes = std::max({bytes, x + w, frozen() ? slope + w : 2 * slope + std::max(x, w)});
    }
    return native_tensor(bytes, 1);
  }
  /// And their scales: of a gradient, or of each row. Where ranks have rows of a matrix each, what
  /// they find together of its columns waits while its input has scales of its own.
  std::int64_t narrow_scales() const {
    std::int64_t bytes = scales(1);
    const auto sides = layout.block.sides();
    for (std::size_t l = 0; recipe().by_rows && l < sides.size(); ++l) {
      const auto& [outputs, inputs] = sides[l];
      const std::int64_t read = rows_of(static_cast<NativeLinear>(l));
      std::int64_t backward = scales(read) + scales(inputs);
      if (!frozen()) backward += scales(outputs);
      const auto linear = static_cast<NativeLinear>(l);
      if (!frozen() && shares(linear) && !sums_over_ranks(linear)) backward += scales(inputs);
      bytes = std::max({bytes, scales(read) + scales(outputs), backward});
    }
    return native_tensor(bytes, 1);
  }
  /// What ranks that share layers tell each other of the scales of a product, in fp32: magnitudes
  /// of two matrices, or of the rows of both, of whose sides the other is the hidden size.
  std::int64_t joint_magnitudes() const {
    if (!narrow() || tensor == 1) return 0;
    return native_tensor(tensor * (recipe().by_rows ? rows + layout.block.hidden : 2), 4);
  }

  /// What a block makes again under selective checkpointing, and what it keeps beside it.
  std::int64_t renewed() const {
    const NativeBlock& k = layout.block;
    std::int64_t sum = 2 * stream() + mlp_renewed() + (k.head_norms ? matrix(k.packed) : 0);
    for (const NativeLinear l : kNativeLinears)
      if (product_again(l)) sum += made_of(l);
    return sum;
  }
  /// What blocks have for it together: also what a projection adds, where that is made again.
  std::int64_t renewed_together() const {
    if (!renews()) return 0;
    return renewed() + (product_again(NativeLinear::out) ? stream() : 0);
  }
  std::int64_t products() const {
    const NativeBlock& k = layout.block;
    std::int64_t sum = (k.layer_norm ? 4 : 2) * stream_statistic() +
                       kept_product(NativeLinear::qkv) + statistic(k.query_heads) +
                       matrix(k.query_width) + kept_product(NativeLinear::out) + mlp_products();
    if (k.head_norms) sum += statistic(k.query_heads + k.key_value_heads);
    for (const NativeLinear l : kNativeLinears)
      if (const std::int64_t columns = k.of(l).parts * k.rank; columns > 0)
        sum += k.of_experts(l) ? expert_matrix(columns) : matrix(columns);
    return sum + kept_scales();
  }
  std::int64_t everything() const { return products() + renewed(); }
  /// Whether the block at `place` of a chunk is done again whole, and whether any may be. Where
  /// only some are, a stage has one chunk.
  bool again(std::int64_t place) const {
    if (plan.checkpointing == Checkpointing::blocks)
      return CheckpointedBlocks{plan.checkpoint_share}.has(pipeline.index * blocks_of_chunk() +
                                                           place);
    return plan.checkpointing == Checkpointing::full;
  }
  /// Whether all blocks make again what is no product of theirs, or not one to keep.
  bool renews() const {
    return plan.checkpointing == Checkpointing::selective ||
           plan.checkpointing == Checkpointing::selective_op;
  }
  bool any_again() const {
    return plan.checkpointing == Checkpointing::blocks || plan.checkpointing == Checkpointing::full;
  }
  /// What a block keeps for the backward pass, with the residual stream before it.
  std::int64_t kept(std::int64_t place = 0) const {
    return stream() + (again(place) ? 0 : renews() ? products() : everything());
  }
  /// Blocks that keep it on the GPU at once, of a chunk: each leaves its place to the second after
  /// it.
  static constexpr std::int64_t kPlaces = 2;
  std::int64_t blocks_of_chunk() const { return layout.blocks.front().count / pipeline.chunks; }
  std::int64_t places() const {
    return sends_kept ? std::min(kPlaces, blocks_of_chunk()) : blocks_of_chunk();
  }
  /// What the blocks of a chunk keep on the GPU.
  std::int64_t kept_of_chunk() const {
    std::int64_t sum = 0;
    for (std::int64_t place = 0; place < places(); ++place) sum = checked_add(sum, kept(place));
    return sum;
  }
  /// Where a matrix of 4 bits is widened to be multiplied with, one at a time.
  std::int64_t widened() const {
    std::int64_t largest = 0;
    for (const NativeAdapters& of : layout.block.adapters) largest = std::max(largest, of.elements);
    return native_tensor(largest, width);
  }

  /// What cuDNN takes; the engine has kernels of its own for the rest.
  bool cudnn_attention() const {
    const std::int64_t head_width = layout.block.query_width / layout.block.query_heads;
    return width == 2 && head_width % 8 == 0 && head_width <= 128 && sequence > 1;
  }

  std::int64_t logit_rows() const {
    const std::int64_t row = checked_mul(layout.padded_vocabulary, width);
    const std::int64_t chunks = ceil_div(checked_mul(rows, row), kLogitBytes);
    return std::min(rows, round_up(ceil_div(rows, chunks), 128));
  }
};

}  // namespace shardplan
