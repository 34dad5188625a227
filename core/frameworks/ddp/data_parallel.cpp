#include "frameworks/ddp/data_parallel.h"

#include <algorithm>
#include <utility>

#include "frameworks/ddp/buckets.h"
#include "lowering/gradient_uses.h"
#include "lowering/graph_pool.h"
#include "lowering/library_workspaces.h"
#include "lowering/loaded_weights.h"
#include "lowering/micro_batches.h"
#include "lowering/optimizer_kernels.h"
#include "lowering/optimizer_memory.h"
#include "lowering/tensors.h"
#include "optimizers/description.h"
#include "trainers/description.h"

namespace shardplan {
namespace {

/// Gradients live in tensors of their own, or as views into DDP's buckets.
struct Hooks {
  bool views = false;
  /// The model is compiled in one piece: autograd gets all gradients when its pass is over, and
  /// adds them to earlier ones then.
  bool at_once = false;
  DType type = DType::f32;
  GradientUses uses;
  bool accumulating = false;  ///< an earlier micro-batch left its gradients
  bool reducing = false;      ///< this micro-batch's gradients go to DDP's buckets
  std::vector<Kernel> taken;  ///< what the gradients of this iteration cost
  std::vector<Kernel> given;  ///< what takes the reduced ones out of the buckets
  std::vector<Event> trials;  ///< of the compiler, when the head is met for the first time
  std::size_t segments = 0;

  void enter(ProgramBuilder& b, std::size_t segment) {
    if (segment + 1 == segments) b.in_first_step(std::exchange(trials, {}));
  }
  /// Before the first step, or with a head that is a graph of its own.
  void compile(ProgramBuilder& b, const ModelRun& run) {
    segments = run.segments.size();
    if (run.ends_apart)
      trials = run.trials;
    else
      b.in_first_step(run.trials);
  }
  /// Of `bytes`, of which `moved` times as many are read and written.
  Kernel sweep_over(std::int64_t bytes, double moved, Issue issue) const {
    Kernel k;
    k.kind = KernelKind::elementwise;
    k.issue = issue;
    k.type = type;
    k.bytes = moved * static_cast<double>(bytes);
    k.elements = static_cast<double>(bytes / size_of(type));
    return k;
  }
  void gradient(ProgramBuilder& b, ParameterId id, std::int64_t bytes) {
    // An earlier micro-batch's is added to in place; a view is copied into.
    const bool adds = !at_once && (views || accumulating);
    const GradientUse use = uses.arrive(b, id, bytes, adds);
    if (use == GradientUse::between || use == GradientUse::last)
      taken.push_back(sweep_over(bytes, 3, Issue::inner));
    if (waits(use)) return;
    // The first one becomes the parameter's as it is (AccumulateGrad::accumulateGrad).
    Kernel node = sweep_over(bytes, 3, Issue::autograd);
    if (!accumulating) node.kind = KernelKind::none;
    taken.push_back(node);
    if (!reducing) return;
    // Divided by the ranks into its bucket, and copied back unless it is a view of that
    // (torch/csrc/distributed/c10d/reducer.cpp, mark_variable_ready_dense, finalize_bucket_dense).
    taken.push_back(sweep_over(bytes, 2, Issue::inner));
    if (!views) given.push_back(taken.back());
  }
  void added(ProgramBuilder& b, ParameterId id, std::int64_t bytes) { uses.added(b, id, bytes); }
  void summed(ProgramBuilder& b, ParameterId id, std::int64_t bytes) { uses.summed(b, id, bytes); }
  /// `bytes` of all gradients, in buckets of `cap`.
  void reduce(ProgramBuilder& b, std::int64_t bytes, std::int64_t cap) const {
    b.reduce_buckets(Collective::all_reduce, bytes, "gradient all-reduce", ceil_div(bytes, cap));
    b.compute(given);  // of a bucket while the next one is reduced
    b.wait(Stream::communication);
  }
  /// The backward pass is over; `bytes`: of all gradients.
  void end_pass(ProgramBuilder& b, std::int64_t bytes) {
    if (at_once && accumulating) b.free(Category::gradients, bytes);
    accumulating = true;
  }
  void end(ProgramBuilder& b) {
    b.compute(taken);
    taken.clear();
  }
};

/// ZeroRedundancyOptimizer gives each tensor, the largest first, to the rank with the fewest
/// elements so far (torch/distributed/optim/zero_redundancy_optimizer.py, _partition_parameters).
/// What the rank with the most elements gets.
std::vector<OwnedTensor> heaviest_rank(const std::vector<OwnedTensor>& all, std::int64_t ranks) {
  std::vector<OwnedTensor> sorted;
  for (const OwnedTensor& t : all)
    sorted.insert(sorted.end(), static_cast<std::size_t>(t.count), {t.parameter, t.numel, 1});
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const OwnedTensor& x, const OwnedTensor& y) { return x.numel > y.numel; });
  struct Rank {
    std::int64_t elements = 0;
    std::vector<OwnedTensor> tensors;
  };
  std::vector<Rank> by_rank(static_cast<std::size_t>(ranks));
  const auto fewer = [](const Rank& x, const Rank& y) { return x.elements < y.elements; };
  for (const OwnedTensor& t : sorted) {
    Rank& rank = *std::min_element(by_rank.begin(), by_rank.end(), fewer);
    rank.elements += t.numel;
    rank.tensors.push_back(t);
  }
  return std::max_element(by_rank.begin(), by_rank.end(), fewer)->tensors;
}

/// What exists before the first step, in the order in which transformers makes it, where it packs
/// weights.
void load_packed(Program& program, const Model& model, const Plan& plan) {
  if (quantization_of(plan.workload) == Quantization::none) return;
  program.build = load_packed_model(model, plan);
  for (const Event& e : program.resident)
    if (e.category != Category::parameters) program.build.push_back(e);
}

/// What a rank's optimizer step works on: bytes of master weights and of gradients.
struct StepStates {
  const std::vector<OwnedTensor>& owned;
  const OptimizerMemory& optimizer;
  std::int64_t master = 0, gradients = 0;
  std::int64_t in_graphs = 0;  ///< of the gradients, in the pool of CUDA graphs
  bool views = false;          ///< gradients stay, as views into buckets
  bool sharded = false;
};

void emit_step(ProgramBuilder& b, const Model& model, const Plan& plan, const StepStates& s) {
  const Precision& precision = plan.precision;
  b.begin_phase(Phase::step);
  if (plan.gradient_clipping > 0) b.transient(Category::workspace, clipping_transient(model));
  emit_made_states(b, plan.optimizer, s.optimizer);
  emit_temporaries(b, s.optimizer.temporaries);
  if (plan.gradient_clipping > 0)
    b.compute(clipping_kernels(trainable_shards(model, 1), precision.gradients));
  if (variant_of(plan.optimizer).update != nullptr) b.synchronize();
  b.compute(optimizer_kernels(s.owned, plan.optimizer, precision, Given::tensors));
  if (s.master > 0) {
    // Widens gradients, tensor by tensor, and narrows updated weights.
    b.compute({sweep(static_cast<double>(2 * s.gradients + s.master), precision.gradients)});
    b.transient(Category::workspace,
                round_up(checked_mul(largest_trainable(model), 4), kAllocationUnit));
  }
  if (s.sharded) {
    b.collective(Collective::broadcast, parameter_bytes(model, plan), "parameter broadcast",
                 model.tensor_count());
    b.wait(Stream::communication);
  }
  if (!s.views) b.free(Category::gradients, s.gradients - s.in_graphs);
  b.free(Category::gradients, s.in_graphs, Stream::graphs);
  b.end_phase(Phase::step);
}

}  // namespace

bool finds_unused_parameters(const Plan& plan) {
  const bool asked =
      plan.trainer->finds_unused && (!plan.recomputes_blocks() || plan.workload.lora.has_value());
  return plan.framework.ddp.find_unused_parameters.value_or(asked);
}

namespace {

BucketOptions bucket_options(const Plan& plan, bool views) {
  return {.cap = plan.framework.ddp.bucket_cap_bytes,
          .category = views ? Category::gradients : Category::communication_buffers,
          .made_anew = !finds_unused_parameters(plan)};
}

/// Of one rank, where so many share them.
std::int64_t master_bytes(const Model& model, const Precision& precision, std::int64_t ranks) {
  if (!precision.master) return 0;
  return ceil_div(trainable_bytes(model, *precision.master, DType::f32), ranks);
}

}  // namespace

Program lower_data_parallel(const Model& model, const Plan& plan, const ModelRun& run,
                            const DdpOptions* options) {
  Program program = program_of(run);
  ProgramBuilder b(program);
  const Precision& precision = plan.precision;
  const bool ddp = options != nullptr;
  const std::int64_t world = plan.replicas();
  const std::int64_t gradients = trainable_bytes(model, precision.gradients, DType::f32);
  const bool sharded_optimizer = ddp && options->zero_redundancy_optimizer;

  add_cublas_workspaces(b, plan.cluster.gpu);
  append_parameters(program.resident, model, plan);
  const bool views = ddp && options->gradient_as_bucket_view;
  DdpRebuild rebuild;
  if (ddp) rebuild = add_ddp_buckets(program, model, run, precision, bucket_options(plan, views));
  b.resident(Category::other, batch_bytes(plan));
  if (ddp) program.build.push_back(program.resident.back());
  program.model_bytes = total_bytes(program.resident);

  std::vector<OwnedTensor> owned = trainable_shards(model, 1);
  if (sharded_optimizer) owned = heaviest_rank(owned, world);
  const OptimizerMemory optimizer =
      optimizer_memory(owned, plan.optimizer, precision.optimizer_states, Given::tensors);
  const std::int64_t master = master_bytes(model, precision, sharded_optimizer ? world : 1);
  if (!ddp && master == 0) load_packed(program, model, plan);
  add_resident_states(program, plan.optimizer, optimizer);
  program.host.pageable = program.managed = optimizer.paged;
  program.optimizer_source = states_source(plan.optimizer, Given::tensors);
  b.resident(Category::master_parameters, master);

  const std::vector<SegmentRepeat> forward = whole_segments(run);
  const bool at_once = !ddp && gradients_at_once(model, plan);
  Hooks hooks{views, at_once, precision.gradients, {model, run, forward}};
  const std::vector<SegmentRepeat> backward(forward.rbegin(), forward.rend());
  hooks.compile(b, run);
  emit_micro_batches(b, plan.workload.gradient_accumulation, [&](bool last) {
    b.begin_phase(Phase::forward);
    if (!rebuild.made.empty()) b.once(2, rebuild.held, Chance::soonest);
    b.once(2, std::exchange(rebuild.made, {}));
    emit_forward(b, model, run, forward, hooks);
    b.end_phase(Phase::forward);
    b.begin_phase(Phase::backward);
    hooks.reducing = ddp && last;  // accumulation runs under no_sync
    if (last) b.once(2, rebuild.held, Chance::usual);
    emit_backward(b, model, run, backward, hooks);
    if (last) b.once(2, rebuild.held, Chance::latest);
    hooks.end_pass(b, gradients);
    // A model without a graph (a list of tensors) still has gradients.
    if (run.segments.empty() && last && !views) b.alloc(Category::gradients, gradients);
    if (hooks.reducing) hooks.reduce(b, gradients, options->bucket_cap_bytes);
    b.end_phase(Phase::backward);
  });

  const std::int64_t in_graphs = plan.records_graphs() ? gradients - hooks.uses.beside_graphs() : 0;
  emit_step(b, model, plan,
            {owned, optimizer, master, gradients, in_graphs, views, sharded_optimizer});
  if (plan.records_graphs()) move_to_graph_pool(program, plan.cluster.gpu, run);
  return program;
}

}  // namespace shardplan
