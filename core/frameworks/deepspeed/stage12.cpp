// ZeRO stages 1 and 2: DeepSpeedZeroOptimizer (deepspeed/runtime/zero/stage_1_and_2.py).
#include <algorithm>
#include <span>
#include <utility>

#include "frameworks/deepspeed/passes.h"
#include "frameworks/deepspeed/stage12_plan.h"
#include "frameworks/deepspeed/stages.h"
#include "lowering/gradient_uses.h"
#include "lowering/library_workspaces.h"
#include "lowering/micro_batches.h"
#include "lowering/optimizer_kernels.h"
#include "lowering/tensors.h"
#include "trainers/description.h"

namespace shardplan {
namespace {

/// Stage 2: gradients leave their autograd storage for the bucket one by one.
struct Hooks2 {
  const Stage12& z;
  const std::vector<SegmentRepeat>& repeats;
  GradientUses uses;
  const std::vector<bool>& apart;  ///< summed_apart
  bool bucket = false;
  bool own = false;
  std::vector<std::int64_t> reached;  ///< iterations of each segment before this repeat
  std::size_t repeat = 0;
  GradientList taken;  ///< gradients of this iteration

  void enter(ProgramBuilder&, std::size_t k) {
    if (k > 0) reached[repeats[repeat].segment] += repeats[repeat].count;
    repeat = k;
  }

  bool here(const std::optional<BackwardPlace>& place, ParameterId id) const {
    return place && place->segment == repeats[repeat].segment && place->before == id &&
           place->iteration == reached[place->segment] && repeats[repeat].count == 1;
  }

  void added(ProgramBuilder& b, ParameterId id, std::int64_t bytes) { uses.added(b, id, bytes); }
  void gradient(ProgramBuilder& b, ParameterId id, std::int64_t bytes) {
    if (z.at_once) {
      if (!waits(uses.arrive(b, id, bytes, false))) taken.add(bytes / z.e.b);
      return;
    }
    const GradientUse use = uses.next(id);
    if (waits(use)) return emit_waiting(b, use, bytes);
    if (!bucket) {
      bucket = true;
      z.make_buckets(b);
    }
    taken.add(bytes / z.e.b);
    const bool summed = use == GradientUse::last;
    b.alloc(Category::gradients, bytes);
    if (summed) {  // the hook gets the sum alone
      b.free(Category::gradients, bytes);
      if (apart[static_cast<std::size_t>(id)]) b.free(Category::gradients, bytes);
    }
    if (here(z.schedule.first_divided, id)) z.flush(b, z.schedule.divided_elements);
    if (here(z.schedule.first_own, id) && !own) {
      own = true;
      z.keep_own(b);
    }
    if (!summed || !apart[static_cast<std::size_t>(id)]) b.free(Category::gradients, bytes);
  }

  /// Hooks that run when all gradients are there: they go into the bucket one by one, and what is
  /// this rank's is copied out when it is full for the first time.
  void take_all(ProgramBuilder& b) {
    const std::int64_t first = std::min(z.zero.reduce_bucket_size, z.e.trainable);
    bucket = own = true;
    b.gradients_whole();
    z.make_buckets(b);
    b.free(Category::gradients, z.e.b * first);
    z.flush(b, first);
    z.keep_own(b);
    b.free(Category::gradients, z.whole_bytes() - z.e.b * first);
  }

  /// The engine's work for the gradients of one iteration.
  void end(ProgramBuilder& b) {
    b.host_work(Issue::bucket, z.host_calls(static_cast<std::int32_t>(taken.tensors)));
    z.take(b, taken);
    taken = {};
  }
};

void emit_stage2(ProgramBuilder& b, const Stage12& z) {
  const std::vector<SegmentRepeat> forward = whole_segments(z.run);
  const std::vector<SegmentRepeat> backward = cut_backward(
      z.run, {z.schedule.first_gradient, z.schedule.first_divided, z.schedule.first_own});
  const std::vector<bool> apart = summed_apart(z.model, z.run);
  bool accumulated = false;  // gradients of earlier micro-batches are alive
  emit_micro_batches(b, z.plan.workload.gradient_accumulation, [&](bool last) {
    b.begin_phase(Phase::forward);
    NoHooks none;
    emit_forward(b, z.model, z.run, forward, none);
    b.end_phase(Phase::forward);
    // Made here: it counts the iterations of this backward pass alone.
    Hooks2 hooks{z,
                 backward,
                 {z.model, z.run, backward},
                 apart,
                 false,
                 false,
                 std::vector<std::int64_t>(z.run.segments.size(), 0)};
    b.begin_phase(Phase::backward);
    emit_backward(b, z.model, z.run, backward, hooks);
    if (z.at_once) hooks.take_all(b);
    if (!hooks.bucket) z.make_buckets(b);
    // The epilogue flushes what is left in the bucket.
    z.flush(b, z.schedule.last_divided_elements);
    if (!hooks.own) z.keep_own(b);
    // Earlier micro-batches' gradients are added and dropped, in the model's dtype.
    if (accumulated && !z.offload) b.free(Category::gradients, z.e.b * z.touched, z.reduce_pool());
    z.drop_buckets(b);
    z.take_last(b);
    z.reduce_traffic(b);
    if (z.offload) z.accumulate_on_host(b, accumulated, last);
    b.end_phase(Phase::backward);
    accumulated = true;
  });
}

/// Stage 1: gradients stay whole until the boundary, and the bucket exists from the first hook on.
struct Hooks1 {
  const Stage12& z;
  GradientUses uses;
  bool accumulating = false;  ///< an earlier micro-batch left its gradients
  bool bucket = false;

  GradientList taken;  ///< gradients of this iteration

  void end(ProgramBuilder& b) {
    if (taken.tensors == 0) return;
    // Nothing goes into a bucket before the boundary: a third of what a hook takes else, by the
    // calls that are left of it in stage_1_and_2.py; no run has confirmed it.
    b.host_work(Issue::bucket, static_cast<std::int32_t>(ceil_div(taken.tensors, 3)));
    if (z.accumulates_whole) b.compute(accumulation_kernels(z.e, taken));
    taken = {};
  }
  void added(ProgramBuilder& b, ParameterId id, std::int64_t bytes) { uses.added(b, id, bytes); }
  void gradient(ProgramBuilder& b, ParameterId id, std::int64_t bytes) {
    if (z.at_once) {
      if (!waits(uses.arrive(b, id, bytes, false))) taken.add(bytes / z.e.b);
      return;
    }
    const GradientUse use = uses.next(id);
    if (waits(use)) return emit_waiting(b, use, bytes);
    if (!bucket) {
      bucket = true;
      z.make_buckets(b);
    }
    taken.add(bytes / z.e.b);
    if (use == GradientUse::last)
      b.transient(Category::gradients, bytes);
    else
      b.alloc(Category::gradients, bytes);
    if (z.accumulates_whole && !accumulating) b.alloc(Category::gradients, bytes / z.e.b * z.e.g);
    if (z.accumulates_whole || accumulating) b.free(Category::gradients, bytes);
  }
};

/// Hooks of stage 1 that run when all gradients are there: each is added to an earlier
/// micro-batch's, or to one in the accumulation type, and goes.
void accumulate_all(ProgramBuilder& b, const Stage12& z, Hooks1& hooks) {
  if (!hooks.bucket) z.make_buckets(b);
  hooks.bucket = true;
  if (!z.accumulates_whole) {
    if (hooks.accumulating) b.free(Category::gradients, z.whole_bytes());
    return;
  }
  for (const Event& tensor : trainable_tensors(z.model, Category::gradients, z.e.b)) {
    const std::int64_t bytes = checked_mul(tensor.bytes, tensor.count);
    if (!hooks.accumulating) b.alloc(Category::gradients, bytes / z.e.b * z.e.g);
    b.free(Category::gradients, bytes);
  }
}

/// Gradients are whole. They move into the bucket and are freed; own ones are copied out at the
/// first flush. Or they stay whole, in the accumulation type, until the step.
void reduce_whole(ProgramBuilder& b, const Stage12& z, std::int64_t whole) {
  const std::int64_t first = std::min(z.zero.reduce_bucket_size, z.e.trainable);
  b.gradients_whole();
  if (!z.accumulates_whole) b.free(Category::gradients, z.e.b * first);
  z.flush(b, first);
  b.host_work(Issue::bucket, static_cast<std::int32_t>(std::lround(
                                 Stage12::kFlushHooks * static_cast<double>(z.flushes()))));
  z.take(b, {z.tensors, z.e.trainable});
  z.take_last(b);
  if (!z.accumulates_whole) {
    z.keep_own(b);
    b.free(Category::gradients, whole - z.e.b * first);
  }
  z.drop_buckets(b);
  z.reduce_traffic(b);
}

void emit_stage1(ProgramBuilder& b, const Stage12& z) {
  const bool no_graph = z.run.segments.empty();
  const std::int64_t whole = no_graph ? z.e.b * z.e.trainable : z.whole_bytes();
  if (z.e.stage != nullptr) {
    emit_stage_passes(b, z.model, z.plan, z.run, *z.e.stage, [&] {
      z.make_buckets(b);
      reduce_whole(b, z, whole);
    });
    return;
  }
  const std::vector<SegmentRepeat> forward = whole_segments(z.run);
  const std::vector<SegmentRepeat> backward = cut_backward(z.run, {z.schedule.first_gradient});
  Hooks1 hooks{z, {z.model, z.run, backward}};
  emit_micro_batches(b, z.plan.workload.gradient_accumulation, [&](bool last) {
    b.begin_phase(Phase::forward);
    emit_forward(b, z.model, z.run, forward, hooks);
    b.end_phase(Phase::forward);
    b.begin_phase(Phase::backward);
    emit_backward(b, z.model, z.run, backward, hooks);
    if (z.at_once) accumulate_all(b, z, hooks);
    hooks.accumulating = true;
    if (last) {
      if (!hooks.bucket) z.make_buckets(b);
      if (no_graph) b.alloc(Category::gradients, whole);
      reduce_whole(b, z, whole);
    }
    b.end_phase(Phase::backward);
  });
}

void emit_step(ProgramBuilder& b, const Stage12& z) {
  const Engine& e = z.e;
  const std::int64_t p = z.partition();
  const std::int64_t most = z.largest_partition();
  const std::int64_t fragment = z.largest_fragment();
  b.begin_phase(Phase::step);
  if (z.offload) {
    b.copy(LinkKind::host, false, e.m * p, "gradients to the host");
    update_on_host(b, z.plan, e, p);
    b.copy(LinkKind::host, true, e.b * p, "updated parameters from the host");
  } else {
    // Inf and NaN are looked for in fp32 and boolean copies; the norm is taken in double.
    // Since 0.19.6 the former reads in place (deepspeed/runtime/utils.py).
    if (e.overflow_copies) b.transient(Category::workspace, 12 * fragment);
    b.transient(Category::workspace, 8 * (z.accumulates_whole ? e.largest : fragment));
    if (z.accumulates_whole) b.free(Category::gradients, e.g * (e.trainable - z.touched));
    // flatten(averaged_gradients), its fp32 cast, then the 16-bit buffers go.
    const std::int64_t g = z.accumulates_whole ? e.g : e.b;
    const std::int64_t flat = e.ranks > 1 || fragment < p ? g * most : 0;
    const std::int64_t cast = e.m == g ? 0 : e.m * most;  // no copy when the type is right
    b.alloc(Category::workspace, flat);
    b.alloc(Category::workspace, cast);
    if (cast > 0) b.free(Category::workspace, flat);
    b.free(Category::gradients, g * z.touched,
           z.accumulates_whole ? Stream::compute : z.reduce_pool());
    b.once(1, state_blocks(e, z.updated()));  // the optimizer makes them when it runs first
    b.transient(Category::workspace,
                std::max(step_temporaries(e, z.updated()), special_temporaries(z.model, e)));
    b.free(Category::workspace, cast > 0 ? cast : flat);
    b.compute(overflow_kernels(e, z.own()));
    b.synchronize();  // the overflow check is read by the host
    b.compute(flat_gradient_kernels(e, z.own()));
    b.compute({sweep(2.0 * static_cast<double>(2 * e.m * p + states_of(e, z.updated()).total()),
                     DType::f32)});
    b.compute(special_kernels(z.model, e));
    b.compute(parameter_casts(e, z.own()));
  }
  if (e.ranks > 1)
    b.collective(Collective::all_gather, e.b * z.layout.padded(), "parameter all-gather");
  if (z.experts.ranks() > 1)
    b.collective(Collective::all_gather, e.b * z.experts.padded(), "parameter all-gather", 1,
                 Group::expert_data);
  b.wait(Stream::communication);
  b.end_phase(Phase::step);
}

void append_block(std::vector<Event>& list, Event::Kind kind, std::int64_t elements,
                  std::int64_t bytes_each) {
  append_tensors(list, Category::parameters, checked_mul(elements, bytes_each), 1);
  list.back().kind = kind;
}

/// The parameters that train as the program made them, and as the engine casts them, each before
/// the next (_cast_module_mixed_precision).
void append_originals(std::vector<Event>& build, const Stage12& z,
                      std::span<const std::int64_t> tensors) {
  const std::int64_t given = size_of(built_type(z.plan));
  const bool casts = given > z.e.b && z.e.frozen_bytes == 0;
  for (const std::int64_t elements : tensors)
    append_block(build, Event::Kind::alloc, elements, casts ? given : z.e.b);
  if (!casts) return;
  for (const std::int64_t elements : tensors) {
    append_block(build, Event::Kind::alloc, elements, z.e.b);
    append_block(build, Event::Kind::free, elements, given);
  }
}

/// The cache is emptied before each optimizer group is put into one buffer (DeepSpeedZeroOptimizer,
/// __init__). What a group's parameters had been in goes back when the next group's turn comes, and
/// so does the copy that its masters are cast from; the last group's stay cached. `build` begins
/// with the buffer.
void append_last_originals(std::vector<Event>& build, const Stage12& z) {
  if (!z.plan.trainer->keeps_build_cache || groups_by_decay(z.plan) || z.experts.exist() ||
      z.updated().size() > 1)
    return;
  const std::vector<std::int64_t> tensors = trainable_in_order(z.model);
  std::vector<Event> first;
  append_originals(first, z, tensors);
  first.push_back({.kind = Event::Kind::empty_cache});
  first.push_back(build.front());
  for (const std::int64_t elements : tensors)
    append_block(first, Event::Kind::free, elements, z.e.b);
  for (auto event = build.begin() + 1; event != build.end(); ++event) {
    const bool cast = event->category == Category::master_parameters && z.e.m != z.e.b;
    if (cast) append_block(first, Event::Kind::alloc, z.partition(), z.e.b);
    first.push_back(*event);
    if (cast) append_block(first, Event::Kind::free, z.partition(), z.e.b);
  }
  build = std::move(first);
}

/// Building ends with gradients of zeros for the states that are updated here, which go again
/// (initialize_optimizer_states).
void append_first_gradients(std::vector<Event>& build, const Stage12& z) {
  if (z.offload) return;
  for (const Event::Kind kind : {Event::Kind::alloc, Event::Kind::free}) {
    append_tensors(build, Category::gradients, z.e.m * z.layout.partition(), 1);
    build.back().kind = kind;
  }
}

}  // namespace

Program lower_stage12(const Model& model, const Plan& plan, const ModelRun& run,
                      const Engine& engine, std::int64_t rank) {
  Program program = program_of(run);
  ProgramBuilder b(program);
  const Stage12 z(model, plan, run, engine, rank);

  b.resident(Category::parameters, engine.b * z.layout.padded());
  for (const std::int64_t part : z.experts.partitions())
    b.resident(Category::parameters, engine.b * part * z.experts.ranks());
  b.resident(Category::parameters, engine.frozen_bytes);
  b.resident(Category::parameters, z.experts.replaced_bytes(plan, engine.b));
  add_common_residents(b, plan);
  if (z.offload) {
    b.resident(Category::communication_buffers, engine.b * engine.largest);
    std::vector<std::int64_t> partitions = z.experts.partitions();
    partitions.insert(partitions.begin(), z.layout.partition());
    const std::int64_t states = states_of(engine, z.updated()).total();
    program.host = offloaded_stage12(plan, engine, partitions, z.touched, states);
  } else {
    b.resident(Category::master_parameters, engine.m * z.layout.partition());
    for (const std::int64_t part : z.experts.partitions())
      b.resident(Category::master_parameters, engine.m * part);
  }
  program.model_bytes = total_bytes(program.resident);
  program.build = program.resident;
  if (plan.trainer->keeps_build_cache && !z.offload)
    make_workspaces_in_first_step(b, program.build, run);
  append_last_originals(program.build, z);
  append_first_gradients(program.build, z);
  if (!z.offload) add_states(program, engine, states_of(engine, z.updated()));

  if (z.zero.stage == 2) {
    emit_stage2(b, z);
  } else {
    emit_stage1(b, z);
  }
  emit_step(b, z);
  return program;
}

}  // namespace shardplan
