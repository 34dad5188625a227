#include "launch/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "checkpoint/shards.h"
#include "comm/groups.h"
#include "comm/lookout.h"
#include "data/batches.h"
#include "device/errors.h"
#include "engine/pretrained.h"
#include "kernels/host/crew/host_crew.h"
#include "launch/environment.h"
#include "launch/median.h"
#include "launch/phase_clock.h"

namespace shardplan::validator {
namespace {

/// Samples of nothing: a dry run reads none.
class NoBatches final : public BatchSource {
 public:
  Batch next(std::int64_t, std::int64_t) override { return {}; }
};

/// A trainer whose allocations of the run are the model's phase.
std::unique_ptr<Trainer> make_trainer(const EngineJob& job, const Runtime& runtime) {
  runtime.arena.begin_phase(Phase::model);
  auto trainer = std::make_unique<Trainer>(runtime,
                                           job.make_network({.tensor = runtime.tensor.rank(),
                                                             .context = runtime.context.rank(),
                                                             .stage = runtime.stages.rank(),
                                                             .experts = runtime.experts.rank()}),
                                           job.training);
  runtime.arena.end_phase();
  return trainer;
}

ModelDegrees degrees_of(const EngineJob& job) {
  return {.tensor = job.tensor_ranks(),
          .context = job.context_ranks(),
          .stages = job.training.pipeline.stages,
          .tied_ends = job.tied_ends(),
          .experts = job.expert_ranks(),
          .sparse = job.sparse()};
}

Runtime runtime_of(Backend& backend, const Groups& groups, Arena& arena, HostSide* host) {
  return {backend,         groups.data(), groups.tensor(),  groups.context(),
          groups.stages(), groups.ends(), groups.experts(), groups.copies(),
          arena,           host};
}

std::unique_ptr<BatchSource> make_batches(const EngineJob& job, const Tokens& tokens,
                                          const Groups& groups) {
  const Workload& w = job.plan().workload;
  const ContextShare share{groups.context().rank(), groups.context().size()};
  const Division division{w.micro_batch,
                          w.sequence_length,
                          w.gradient_accumulation,
                          groups.data().rank() / share.ranks,
                          groups.data().size() / share.ranks,
                          share};
  if (const auto* mlp = std::get_if<MlpSpec>(&job.network))
    return class_batches(*mlp, division, job.training.seed);
  return token_batches(tokens, division);
}

/// What has been moved to and from NVMe so far.
struct Moved {
  StorageUse host, direct;
};

StorageUse use_of(Swap* swap) {
  return swap != nullptr ? swap->use() : StorageUse{};
}

StorageUse difference(const StorageUse& after, const StorageUse& before) {
  return {after.read - before.read, after.written - before.written,
          after.busy_seconds - before.busy_seconds};
}

StorageUse sum(const StorageUse& a, const StorageUse& b) {
  return {a.read + b.read, a.written + b.written, a.busy_seconds + b.busy_seconds};
}

void report_host(RankHostMemory& host, const Moved& before, RankReport& report) {
  report.host = host.used();
  if (host.swap() == nullptr) return;
  report.storage = host.swap()->description();
  report.storage_use = difference(use_of(host.swap()), before.host);
  if (host.direct() == nullptr) return;
  report.direct = host.direct()->description();
  report.direct_use = difference(use_of(host.direct()), before.direct);
}

Activity activity_of(Phase phase) {
  switch (phase) {
    case Phase::model:
      return Activity::start;
    case Phase::forward:
      return Activity::forward;
    case Phase::backward:
      return Activity::backward;
    case Phase::step:
      return Activity::step;
    case Phase::save:
      return Activity::save;
  }
  return Activity::start;
}

/// Tells the other processes what a rank is doing, if there are any.
class Diary {
 public:
  Diary(Lookout* lookout, int rank) : lookout_(lookout), rank_(rank) {}
  void at(Activity activity, std::int64_t step) const {
    if (lookout_ != nullptr) lookout_->at(rank_, activity, step);
  }

 private:
  Lookout* lookout_;
  int rank_;
};

/// Times of a rank's steps: whole, and without what it waited for others.
struct StepTimes {
  std::vector<double> whole, waited;
  void report(const EngineJob& job, RankReport& report) const {
    const auto timed = [&](const std::vector<double>& all) {
      const auto first =
          std::min<std::size_t>(static_cast<std::size_t>(job.run.warmup), all.size());
      return median_of({all.begin() + static_cast<std::ptrdiff_t>(first), all.end()});
    };
    report.step_seconds = timed(whole);
    report.waited_seconds = timed(waited);
  }
};

/// The same for all ranks.
struct WholeRun {
  const EngineJob& job;
  const Placement& placement;
  const Tokens& tokens;
  std::optional<Checkpoint> resumed;
};

/// What the rank that tells has to tell; all others have none.
struct Telling {
  std::vector<StepResult>& steps;
  const RunWatch& watch;
};

void give_values(const WholeRun& run, int rank, Trainer& trainer) {
  const RunOptions& options = run.job.run;
  if (run.resumed) {
    restore_rank(run.job, *run.resumed, rank, trainer);
  } else if (options.weights.empty()) {
    trainer.initialise();
  } else {
    load_pretrained(trainer, run.job.network, options.weights);
  }
}

/// A rank's part of a run.
struct RankRun {
  const WholeRun& whole;
  Communicator& world;
  Trainer& trainer;
  Arena& arena;
  RankHostMemory* host;  ///< null: nothing is there, nor on NVMe
  const Diary& diary;
  const std::optional<Telling>& telling;
};

void tell_step(const RankRun& r, std::int64_t index, const StepResult& result) {
  if (!r.telling) return;
  r.telling->steps.push_back(result);
  if (r.telling->watch.stepped)
    r.telling->watch.stepped({index, result, r.arena.profile().peak(), r.arena.live_bytes()});
}

Moved moved_by(const RankRun& r) {
  if (r.host == nullptr) return {};
  return {use_of(r.host->swap()), use_of(r.host->direct())};
}

/// All steps and checkpoints. Returns what had been moved to and from NVMe when the first timed
/// step began.
Moved make_steps(const RankRun& r, BatchSource& batches, RankReport& report) {
  const EngineJob& job = r.whole.job;
  std::optional<Saver> saver;
  if (job.run.save.wanted()) saver.emplace(job, r.whole.tokens, r.trainer, r.world);
  Moved before;
  StepTimes times;
  const std::int64_t first = r.trainer.state().steps;
  std::int64_t index = first;
  PhaseClock phases(r.trainer.runtime().device);
  r.arena.on_phase([&](Phase phase) {
    r.diary.at(activity_of(phase), index + 1);
    phases.at(phase);
  });
  for (; index < job.run.steps; ++index) {
    if (index - first == job.run.warmup) before = moved_by(r);
    if (index - first == job.run.warmup - 1) phases.start();
    const double waited = Waiting::seconds();
    const StepResult result = r.trainer.step(batches);
    phases.stop();
    times.whole.push_back(result.seconds);
    times.waited.push_back(Waiting::seconds() - waited);
    tell_step(r, index, result);
    if (!saver || !saver->due(index + 1)) continue;
    saver->save();
    if (r.telling && r.telling->watch.saved) r.telling->watch.saved(saver->report());
  }
  r.arena.on_phase({});
  const Moved after = moved_by(r);
  report.use_in_steps =
      sum(difference(after.host, before.host), difference(after.direct, before.direct));
  times.report(job, report);
  report.phase_seconds = phases.seconds();
  if (saver) report.save = saver->report();
  return before;
}

void run_rank(const WholeRun& run, RankDevice& device, RankReport& report,
              const std::optional<Telling>& telling) {
  const EngineJob& job = run.job;
  const Placement& placement = run.placement;
  Backend& backend = *device.backend;
  const int rank = device.communicator->rank();
  const std::int64_t limit =
      placement.memory_limit > 0 ? placement.memory_limit : backend.available_bytes();
  report.rank = rank;
  report.node = placement.lookout ? placement.lookout->roster().node_of(rank) : host_name();
  report.device = backend.info();
  const Diary diary(placement.lookout.get(), rank);
  diary.at(Activity::start, 0);
  const WorkspaceRule workspace = [&](const StepShapes& s) { return backend.workspace_bytes(s); };
  const MemoryPlan plan = plan_memory(job, rank, placement.world, workspace, limit);
  report.planned = plan.device;
  report.arena_bytes = plan.extent;
  report.planned_host = plan.host;
  report.planned_save = plan.saved;
  // What ranks of one process take is measured from when all have their devices, and none has taken
  // any of it.
  if (job.uses_host()) device.communicator->barrier();
  const std::int64_t resident = host_bytes_resident();
  if (job.uses_host()) device.communicator->barrier();
  std::unique_ptr<HostCompute> cores;
  std::optional<RankHostMemory> host;
  if (job.uses_host()) {
    check_host_memory(plan.host, placement.host_ranks, placement.host_memory_limit);
    cores =
        make_host_crew({placement.host_index + rank - placement.first_rank, placement.host_ranks});
    host.emplace(backend, *cores, plan.host, job.run.storage, job.training.offload.direct);
    if (job.training.offload.states) report.host_compute = cores->description();
  }

  Arena arena(backend.allocate(report.arena_bytes), report.arena_bytes);
  const Groups groups(backend, *device.communicator, degrees_of(job));
  const auto trainer =
      make_trainer(job, runtime_of(backend, groups, arena, host ? host->side() : nullptr));
  diary.at(Activity::weights, 0);
  give_values(run, rank, *trainer);
  const auto batches = make_batches(job, run.tokens, groups);
  const Moved moved_before = make_steps(
      {run, *device.communicator, *trainer, arena, host ? &*host : nullptr, diary, telling},
      *batches, report);
  trainer->finish();
  report.measured = arena.profile();
  if (host) {
    report.host_growth = host_bytes_resident() - resident;
    report_host(*host, moved_before, report);
  }
  if (placement.ranks_per_device == 1) {
    report.overheads = backend.overheads();
    const std::int64_t bytes = device.communicator->overhead_bytes() + groups.overhead_bytes();
    if (bytes > 0) report.overheads.push_back({"communicator", Category::nccl, bytes});
    report.device_bytes = backend.used_bytes();
  }
  device.communicator->barrier();
}

/// Of several ranks in a process, says which one's device fails or has no room.
template <typename Body>
void naming_rank(const Placement& placement, int rank, Body&& body) {
  if (placement.count == 1) return body();
  const auto named = [&](const std::exception& e) {
    return fmt::format("rank {}: {}", rank, e.what());
  };
  try {
    body();
  } catch (const OutOfMemory& e) {
    throw OutOfMemory(named(e));
  } catch (const DeviceError& e) {
    throw DeviceError(named(e));
  }
}

}  // namespace

MemoryPlan plan_memory(const EngineJob& job, int rank, int world, const WorkspaceRule& workspace,
                       std::int64_t limit) {
  constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();
  const auto backend = make_dry_backend(workspace);
  const auto communicator = make_dry_communicator(rank, world);
  const auto cores = make_dry_host();
  Arena arena(0, limit), pinned(0, kNoLimit), pageable(0, kNoLimit), nvme(0, kNoLimit);
  HostSide host{*cores, pinned, pageable, nvme};
  const Groups groups(*backend, *communicator, degrees_of(job));
  const auto trainer = make_trainer(job, runtime_of(*backend, groups, arena, &host));
  NoBatches batches;
  trainer->step(batches);
  trainer->finish();
  SavedBytes saved;
  if (job.run.save.wanted()) {
    saved = planned_checkpoint(job, rank);
    // Values leave the device from where they lie: nothing is allocated.
    arena.begin_phase(Phase::save);
    arena.end_phase();
    saved.device_peak = arena.profile().of(Phase::save).peak;
  }
  return {
      arena.profile(), arena.extent(), {pinned.extent(), pageable.extent(), nvme.extent()}, saved};
}

FullestRank plan_fullest_rank(const EngineJob& job, int world, const WorkspaceRule& workspace,
                              std::int64_t limit) {
  const int stages = job.training.pipeline.stages;
  FullestRank fullest;
  for (int stage = 0; stage < stages; ++stage) {
    const int rank = stage * (world / stages);
    MemoryPlan plan = plan_memory(job, rank, world, workspace, limit);
    if (stage == 0 || plan.device.peak() > fullest.plan.device.peak())
      fullest = {rank, std::move(plan)};
  }
  return fullest;
}

RunReport run_job(const EngineJob& job, const Placement& placement, const RunWatch& watch) {
  Tokens tokens;
  if (const auto* decoder = std::get_if<DecoderSpec>(&job.network))
    tokens = load_tokens(job.run.data, decoder->vocabulary, job.plan().workload.sequence_length);
  WholeRun run{job, placement, tokens, std::nullopt};
  if (!job.run.resume.empty()) run.resumed = open_checkpoint(job, tokens, job.run.resume);
  RunReport report;
  if (run.resumed) report.first_step = run.resumed->state.steps;
  report.ranks_per_device = placement.ranks_per_device;
  report.ranks.resize(static_cast<std::size_t>(placement.count));
  run_ranks(
      placement.first_rank, placement.count, placement.make,
      [&](RankDevice& device) {
        const int index = device.communicator->rank() - placement.first_rank;
        std::optional<Telling> telling;
        if (index == 0) telling.emplace(Telling{report.steps, watch});
        naming_rank(placement, device.communicator->rank(), [&] {
          run_rank(run, device, report.ranks[static_cast<std::size_t>(index)], telling);
        });
      },
      placement.lookout.get());
  return report;
}

}  // namespace shardplan::validator
