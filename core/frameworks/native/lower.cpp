// The native engine (docs/explanation/validation.md): every tensor comes from one block of memory,
// so there is no caching allocator, and gradients, slots and workspace are kept for the whole run.
#include "frameworks/native/lower.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "frameworks/native/kept_on_host.h"
#include "frameworks/native/kernels.h"
#include "frameworks/native/offload.h"
#include "frameworks/native/sizes.h"
#include "frameworks/native/turns.h"
#include "lowering/micro_batches.h"
#include "lowering/pipeline/schedule.h"

namespace shardplan {
namespace {

constexpr std::int64_t kMatrixWorkspace = std::int64_t{32} << 20;  // cuBLASLt's

/// Scratch of the CUDA back end: what the most demanding operation needs
/// (docs/explanation/validation.md).
std::int64_t cuda_workspace(const Native& n) {
  if (!n.layout.decoder) return kMatrixWorkspace;
  const NativeBlock& k = n.layout.block;
  constexpr std::int64_t kScratchUnit = 256, kSortCounters = std::int64_t{1} << 20, kChunk = 32;
  const std::int64_t chunks = ceil_div(n.rows, kChunk);
  const std::int64_t embedding = 6 * round_up(4 * n.rows, kScratchUnit) +
                                 round_up(checked_mul(chunks, 8 * k.hidden), kScratchUnit) +
                                 kSortCounters;
  const std::int64_t queries = checked_mul(n.rows, k.query_width);
  const std::int64_t statistics = checked_mul(4 * n.rows, k.query_heads);
  std::int64_t attention = statistics;
  if (n.cudnn_attention()) {
    constexpr std::int64_t kSlack = 4096;
    const bool grouped = k.query_heads != k.key_value_heads;
    attention += 4 * queries + (grouped ? 4 * queries : 0) + kSlack;
  }
  return round_up(std::max({kMatrixWorkspace, embedding, attention}), kAllocationUnit);
}

void add_residents(ProgramBuilder& b, const Native& n) {
  const Precision& precision = n.plan.precision;
  const std::int64_t states = size_of(precision.optimizer_states);
  for (const NativeUnit& u : n.layout.units()) {
    if (!n.parameters_on_host)
      b.resident(Category::parameters,
                 native_tensor(n.stage < 3 ? n.padded(u) : n.shard(u), n.width_of(u)), u.count);
    if (u.frozen) continue;
    if (n.stage < 2 || !n.offloads)
      b.resident(Category::gradients,
                 native_tensor(n.stage < 2 ? n.padded(u) : n.shard(u), n.width), u.count);
    if (n.offloads) continue;
    if (precision.master)
      b.resident(Category::master_parameters, native_tensor(n.shard(u), size_of(*precision.master)),
                 u.count);
    b.resident(Category::optimizer_states, native_tensor(n.shard(u), states), 2 * u.count);
  }
  if (n.stage == 3)
    for (const std::int64_t slot : n.slots(false)) b.resident(Category::gathered_parameters, slot);
  if (n.stage >= 2)
    for (const std::int64_t slot : n.slots(true)) b.resident(Category::communication_buffers, slot);
  if (const std::int64_t bytes = n.widened(); bytes > 0) b.resident(Category::workspace, bytes);
  if (n.narrow()) {
    b.resident(Category::workspace, n.narrow_operands());
    b.resident(Category::workspace, n.narrow_scales());
    if (const std::int64_t bytes = n.joint_magnitudes(); bytes > 0)
      b.resident(Category::workspace, bytes);
  }
  if (n.plan.framework.native.device == NativeDevice::cuda)
    b.resident(Category::workspace, cuda_workspace(n));
  b.resident(Category::logits_and_loss, kAllocationUnit);  // the loss
  b.resident(Category::other, kAllocationUnit);            // the gradients' norm
  if (n.pipeline.last()) b.resident(Category::other, native_tensor(n.rows, 4));  // targets
  if (!n.layout.decoder) {
    b.resident(Category::other, native_tensor(checked_mul(n.rows, n.layout.widths.front()), 4));
    return;
  }
  if (n.layout.block.experts > 0) {
    b.resident(Category::other, native_tensor(2 * n.layout.block.experts, 4));  // their balance
    if (n.plan.framework.native.capacity_factor > 0)
      b.resident(Category::other, kAllocationUnit);  // what was dropped
  }
  if (n.pipeline.first())
    b.resident(Category::other, native_tensor(checked_mul(n.pipeline.slots, n.rows), 4));  // tokens
  if (n.layout.rotary)
    b.resident(Category::other, native_tensor(checked_mul(n.sequence, n.layout.head_dim), 4));
}

/// At stage 3 a unit is gathered one ahead of where it is used. `read`: its shards are in the file,
/// if they are kept there, and not in pinned memory.
void emit_gather(ProgramBuilder& b, const Native& n, const NativeUnit& u, bool read) {
  if (n.stage < 3) return;
  emit_shard(b, n, u, read);
  b.gather_ahead(n.padded(u) * n.width_of(u), "parameter all-gather", n.group_of(u));
  b.wait(Stream::communication);
}

/// What is done before a unit is computed with. `there`: unless it has been updated, it is still
/// where it was gathered, and its shard where it was sent from.
void emit_use(ProgramBuilder& b, const Native& n, const NativeUnit& u, bool first, bool there) {
  const bool updated = first && !u.frozen;
  if (first) emit_update(b, n, u, !there);
  if (!there || updated) emit_gather(b, n, u, !there && (!updated || n.delayed));
}

/// What a pass is of: which chunk, and whether of the step's first and last micro-batch.
struct NativePass {
  std::int64_t chunk = 0;
  bool first = false, last = false;
};

/// Reduces a unit's gradient while the next unit is computed.
void emit_reduction(ProgramBuilder& b, const Native& n, const NativeUnit& u,
                    const NativePass& pass) {
  if (u.frozen || (n.stage < 2 && !pass.last)) return;
  if (n.stage == 0) {
    b.collective(Collective::all_reduce, n.padded(u) * n.width, "gradient all-reduce", 1,
                 n.group_of(u));
  } else {
    b.collective(Collective::reduce_scatter, n.padded(u) * n.width, "gradient reduce-scatter", 1,
                 n.group_of(u));
  }
  emit_departure(b, n, u, pass.first, pass.last);
}

/// What the ranks that share each layer have alike, and each has made a part of its gradient:
/// norms and routers; of adapters A or B, whichever is not divided.
void emit_joint_gradients(ProgramBuilder& b, const Native& n, std::string_view what,
                          std::int64_t tensors, std::int64_t elements, bool last) {
  if (n.tensor == 1 || (n.stage < 2 && !last)) return;
  b.collective(Collective::all_reduce, elements * n.width, what, tensors, Group::tensor);
}
constexpr std::string_view kNormGradients = "norm gradient all-reduce";

void emit_joint_block(ProgramBuilder& b, const Native& n, bool last) {
  const NativeBlock& k = n.layout.block;
  if (n.layout.blocks.front().frozen) {
    for (const NativeLinear l : kNativeLinears)  // A beside several outputs, or one B
      if (const std::int64_t parts = k.of(l).parts; parts > 0 && n.shares(l))
        emit_joint_gradients(b, n, "adapter gradient all-reduce", 1,
                             checked_mul(parts * k.rank, k.hidden), last);
    return;
  }
  const std::int64_t norms = k.layer_norm ? 4 : 2;
  emit_joint_gradients(b, n, kNormGradients, norms, norms * k.hidden, last);
  if (k.head_norms) emit_joint_gradients(b, n, kNormGradients, 2, 2 * n.layout.head_dim, last);
  if (k.experts > 0)
    emit_joint_gradients(b, n, "router gradient all-reduce", 1, checked_mul(k.experts, k.hidden),
                         last);
}
void emit_joint_head(ProgramBuilder& b, const Native& n, bool last) {
  const NativeBlock& k = n.layout.block;
  if (n.layout.head.frozen) return;
  const std::int64_t norms = k.layer_norm ? 2 : 1;
  emit_joint_gradients(b, n, kNormGradients, norms, norms * k.hidden, last);
}

/// What was made known to a program of a stretch.
struct KnownStretch {
  std::int32_t first = 0;
  std::int64_t count = 0;
  std::int64_t passed_on = 0;
  std::optional<Collective> exchange;
  std::int64_t bytes = 0;
  bool read = false;
};
using KnownWork = std::vector<KnownStretch>;

KnownWork make_known(ProgramBuilder& b, const NativeWork& work) {
  KnownWork known;
  for (const NativeStretch& s : work)
    known.push_back({b.add_kernels(s.kernels), static_cast<std::int64_t>(s.kernels.size()),
                     s.passed_on, s.exchange, s.bytes, s.read});
  return known;
}

/// The ranks that share each layer, or divide its experts, wait for what they exchange; those that
/// share sequences compute meanwhile.
void emit_work(ProgramBuilder& b, const Native& n, const KnownWork& work) {
  for (const KnownStretch& s : work) {
    if (s.passed_on > 0)
      b.exchange(Collective::send, Group::context, s.passed_on,
                 "keys and values, or their gradients, to the next rank", false);
    if (s.count > 0) b.compute(s.first, s.count);
    if (s.passed_on > 0) b.wait(Stream::communication);
    if (s.read) b.synchronize();
    if (!s.exchange) continue;
    const bool rows = *s.exchange == Collective::all_to_all;
    // Each expert's rows go to it in a message of their own, to those of the rank itself too, and
    // so they come.
    const std::int64_t messages = rows ? 2 * n.layout.block.experts : 0;
    b.exchange(*s.exchange, rows ? Group::expert : Group::tensor, s.bytes,
               rows                                    ? "rows of experts"
               : *s.exchange == Collective::all_gather ? "tensor-parallel all-gather"
                                                       : "tensor-parallel reduce-scatter",
               false, messages);
    b.wait(Stream::communication);
  }
}
void emit_work(ProgramBuilder& b, const Native& n, const NativeWork& work) {
  emit_work(b, n, make_known(b, work));
}

/// What a step's passes leave for each other; of a run without stages, those of a micro-batch.
/// `event`: allocates or frees as much.
template <typename Event>
void emit_kept(const Native& n, Event&& event) {
  const std::int64_t slot = n.kept_of_chunk() + n.stream();  // the branch
  event(Category::activations, checked_mul(n.pipeline.slots, slot) + n.renewed_together());
  event(Category::communication_buffers, n.exchanged() + n.exchanged_rows() + n.ring());
  if (!n.pipeline.last()) return;
  // The residual stream after the last block; the head's norm.
  event(Category::activations,
        2 * n.stream() + (n.layout.block.layer_norm ? 2 : 1) * n.stream_statistic());
  event(Category::logits_and_loss, n.statistic());
}
void alloc_kept(ProgramBuilder& b, const Native& n) {
  emit_kept(n, [&](Category category, std::int64_t bytes) { b.alloc(category, bytes); });
}
void free_kept(ProgramBuilder& b, const Native& n) {
  emit_kept(n, [&](Category category, std::int64_t bytes) { b.free(category, bytes); });
}

/// What surrounds a block's work in a pass.
struct BlockTurn {
  bool there = false;  ///< its parameters may be, from the pass before
  KeptTurn kept;
  NativeBlockPass pass;  ///< of a backward pass
  bool operator==(const BlockTurn&) const = default;
};

/// The work of each block of a chunk, which is the same for those that a pass treats alike; the
/// parameters of two may still be there from the pass before. `first`: in the step's first pass.
/// `lowest`: nothing below the last block of a backward pass is trained. `after` follows each, and
/// what the next one is computed with: gathers go first, beside the work, reductions behind them.
template <typename After>
void emit_layers(ProgramBuilder& b, const Native& n, KeptPass pass, bool first, bool lowest,
                 After&& after) {
  const std::vector<NativeUnit> units = n.layout.units_of_block();
  const std::int64_t blocks = n.blocks_of_chunk();
  const auto turn_of = [&](std::int64_t i) {
    BlockTurn turn{i < 2, kept_turn(n, pass, i), {}};
    if (pass == KeptPass::backward)
      turn.pass = {.lowest = lowest && i == blocks - 1, .again = n.again(blocks - 1 - i)};
    return turn;
  };
  std::vector<std::pair<NativeBlockPass, KnownWork>> known;
  const auto work_of = [&](const NativeBlockPass& of) {
    const auto same = [&](const auto& k) { return k.first == of; };
    const auto found = std::find_if(known.begin(), known.end(), same);
    if (found != known.end()) return found->second;
    known.emplace_back(of, make_known(b, pass == KeptPass::forward ? native_block_forward(n)
                                                                   : native_block_backward(n, of)));
    return known.back().second;
  };
  for (std::int64_t i = 0, alike = 0; i < blocks; i += alike) {
    const BlockTurn turn = turn_of(i);
    for (alike = 1; i > 0 && i + alike < blocks && turn_of(i + alike) == turn;) ++alike;
    b.begin_repeat(alike);
    for (const NativeUnit& u : units) emit_use(b, n, u, first, turn.there);
    if (i > 0) after();
    emit_turn(b, n);
    emit_before(b, n, turn.kept);
    emit_work(b, n, work_of(turn.pass));
    emit_after(b, n, turn.kept);
    b.end_repeat();
  }
  after();
}

/// Gives the next stage, or the one before, what it waits for.
void emit_message(ProgramBuilder& b, const Native& n, std::string_view what) {
  b.exchange(Collective::send, Group::pipeline,
             checked_mul(n.part(), n.layout.block.hidden) * n.width, what, false);
  b.wait(Stream::communication);
}

void emit_forward_pass(ProgramBuilder& b, const Native& n, const NativePass& pass) {
  const bool begins = n.pipeline.begins(pass.chunk), ends = n.pipeline.ends(pass.chunk);
  if (begins) {
    emit_use(b, n, n.layout.embedding, pass.first, n.layout.tied);
    emit_turn(b, n);
    emit_work(b, n, native_embedding(n));
  }
  if (n.any_again()) b.transient(Category::activations, n.everything());
  emit_layers(b, n, KeptPass::forward, pass.first, false, [] {});
  if (!ends) {
    b.compute(native_hand_on(n));
    return emit_message(b, n, "activations to the next stage");
  }
  emit_use(b, n, n.layout.head, pass.first, n.layout.tied);
  emit_turn(b, n);
  b.transient(Category::logits_and_loss,
              native_tensor(checked_mul(n.logit_rows(), n.layout.padded_vocabulary), n.width) +
                  n.loss_parts());
  emit_work(b, n, native_head(n));
  emit_joint_head(b, n, pass.last);
  emit_reduction(b, n, n.layout.head, pass);
}

void emit_backward_pass(ProgramBuilder& b, const Native& n, const NativePass& pass) {
  const NativeBlock& k = n.layout.block;
  const std::int64_t scratch = n.matrix(k.query_width) + n.matrix(k.packed);
  const std::int64_t again = n.any_again() ? n.everything() + n.stream() : 0;
  const std::int64_t exchanged = n.exchanged() + n.ring_gradients();
  b.alloc(Category::communication_buffers, exchanged);
  b.transient(Category::activations, scratch + again);
  const bool lowest = n.pipeline.begins(pass.chunk) && k.rank > 0;
  emit_layers(b, n, KeptPass::backward, false, lowest, [&] {
    emit_joint_block(b, n, pass.last);
    for (const NativeUnit& u : n.layout.units_of_block()) emit_reduction(b, n, u, pass);
  });
  if (n.pipeline.begins(pass.chunk)) {
    emit_work(b, n, native_embedding_backward(n));
  } else {
    emit_message(b, n, "gradients to the stage before");
  }
  b.free(Category::communication_buffers, exchanged);
}

/// A run without stages: what is kept is a micro-batch's.
void emit_decoder(ProgramBuilder& b, const Native& n, bool first, bool last) {
  const NativePass pass{0, first, last};
  b.begin_phase(Phase::forward);
  alloc_kept(b, n);
  emit_forward_pass(b, n, pass);
  b.end_phase(Phase::forward);
  b.begin_phase(Phase::backward);
  emit_backward_pass(b, n, pass);
  emit_reduction(b, n, n.layout.embedding, pass);
  if (last) b.wait(Stream::communication);
  free_kept(b, n);
  b.end_phase(Phase::backward);
}

/// The tables that the first stage and the last have in common: each sends the other its gradient.
void emit_ends(ProgramBuilder& b, const Native& n) {
  if (n.layout.embedding.count == 0) return;
  if (n.layout.tied && !n.layout.embedding.frozen) {
    b.exchange(Collective::send, Group::pipeline,
               checked_mul(n.layout.padded_vocabulary, n.layout.block.hidden) * n.width,
               "tied embedding's gradient", false);
    b.wait(Stream::communication);
  }
  emit_reduction(b, n, n.layout.embedding, {.last = true});
}

/// A stage's passes: what they keep is there for the whole step, so that their order among chunks
/// changes nothing.
void emit_stage(ProgramBuilder& b, const Native& n) {
  b.begin_phase(Phase::forward);
  alloc_kept(b, n);
  b.end_phase(Phase::forward);
  emit_schedule(
      b, stage_schedule(n.plan, n.pipeline.index), {},
      [&](std::int64_t chunk) { emit_forward_pass(b, n, {.chunk = chunk}); },
      [&](std::int64_t chunk, bool last) {
        emit_backward_pass(b, n, {.chunk = chunk, .last = last});
        if (!last) return;
        for (std::int64_t c = 1; c < n.pipeline.chunks; ++c)
          for (std::int64_t i = 0; i < n.blocks_of_chunk(); ++i) {
            emit_joint_block(b, n, true);
            for (const NativeUnit& u : n.layout.units_of_block())
              emit_reduction(b, n, u, {.last = true});
          }
        if (!n.pipeline.last()) return;
        emit_joint_head(b, n, true);
        emit_reduction(b, n, n.layout.head, {.last = true});
      });
  b.begin_phase(Phase::backward);
  emit_ends(b, n);
  b.wait(Stream::communication);
  free_kept(b, n);
  b.end_phase(Phase::backward);
}

/// A perceptron keeps the input and the sum of every layer; the last sums are the logits.
void emit_perceptron(ProgramBuilder& b, const Native& n, bool first, bool last) {
  std::int64_t activations = 0;
  for (std::size_t i = 0; i + 1 < n.layout.widths.size(); ++i) {
    activations += n.matrix(n.layout.widths[i]);
    if (i > 0) activations += n.matrix(n.layout.widths[i]);
  }
  const std::int64_t logits = n.matrix(n.layout.widths.back()) + n.statistic();
  b.begin_phase(Phase::forward);
  b.alloc(Category::activations, activations);
  b.alloc(Category::logits_and_loss, logits);
  const std::vector<NativeUnit>& layers = n.layout.blocks;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    emit_use(b, n, layers[i], first, false);
    emit_turn(b, n);
    b.compute(native_layer_forward(n, i));
  }
  b.end_phase(Phase::forward);
  b.begin_phase(Phase::backward);
  for (std::size_t i = layers.size(); i-- > 0;) {
    if (i + 2 < layers.size()) emit_gather(b, n, layers[i], true);
    emit_turn(b, n);
    b.compute(native_layer_backward(n, i));
    emit_reduction(b, n, layers[i], {.first = first, .last = last});
  }
  if (last) b.wait(Stream::communication);
  b.free(Category::activations, activations);
  b.free(Category::logits_and_loss, logits);
  b.end_phase(Phase::backward);
}

void emit_passes(ProgramBuilder& b, const Native& n) {
  if (n.pipeline.stages > 1) return emit_stage(b, n);
  bool first = true;
  emit_micro_batches(b, n.plan.workload.gradient_accumulation, [&](bool last) {
    n.layout.decoder ? emit_decoder(b, n, first, last) : emit_perceptron(b, n, first, last);
    first = false;
  });
}

}  // namespace

Program lower_native(const Model& model, const Plan& plan, const ModelRun& run, std::int64_t rank) {
  Program program = program_of(run);
  program.one_block = true;
  program.rank = rank;
  ProgramBuilder b(program);
  const Native n(model, plan, rank);
  program.bubble_share = native_bubble_share(n);
  // With stages each pass is a phase; without, the host's times were found with a step's few.
  program.ready_once = n.pipeline.stages > 1;
  add_residents(b, n);
  program.model_bytes = total_bytes(program.resident);
  program.host = native_host_memory(n);
  program.libraries =
      n.layout.decoder && n.cudnn_attention() ? HostLibraries::attention : HostLibraries::products;
  program.reads_past_host = plan.framework.native.use_gds;
  program.library_at_most = cufile_at_most(n);
  emit_passes(b, n);
  b.begin_phase(Phase::step);
  if (n.offloads) {
    emit_delayed_update(b, n);
    b.wait(Stream::copy);
    b.synchronize();
  } else {
    b.compute(native_update(n));
  }
  if (!n.offloads && (n.stage == 1 || n.stage == 2))
    for (const NativeUnit& u : n.layout.units())
      if (!u.frozen)
        b.collective(Collective::all_gather, checked_mul(n.padded(u) * n.width, u.count),
                     "parameter all-gather", u.count, n.group_of(u));
  b.end_phase(Phase::step);
  return program;
}

}  // namespace shardplan
