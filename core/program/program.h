// The step program: what one rank does in one optimizer step, as events on streams.
//
// Layers that repeat are written once inside a repetition, so that a program is as long as the
// network has distinct layers. What a layer's tensors and kernels are is in two tables, from which
// events name rows: a layer that occurs in several places is there once. All bytes are those of
// one rank.
//
// Allocations may be named, so that a run that cares for blocks (simulator/allocator.h) frees the
// right one. A name stands for the stack of its live blocks: iterations of a repetition allocate
// under the same name, and the backward pass frees in the reverse order.
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <string_view>
#include <vector>

#include "base/checked.h"
#include "base/source.h"
#include "plan/group.h"
#include "program/category.h"
#include "program/kernel.h"
#include "program/stream.h"

namespace shardplan {

/// Of a training step; of generation; of an iteration of reinforcement learning or preference
/// training, where several programs run in turn.
enum class Phase : std::uint8_t {
  forward,
  backward,
  step,
  prefill,
  decode,
  generation,
  experience,
  actor_training,
  critic_training,
};
inline constexpr std::size_t kPhaseCount = 9;
enum class LinkKind : std::uint8_t { gpu, host, nvme };
/// Who updates parameters on the host: DeepSpeed's vectorised CPUAdam, PyTorch's operations around
/// it, both with all cores of a node, PyTorch's own, or our engine.
enum class HostOptimizer : std::uint8_t {
  deepspeed,
  deepspeed_passes,
  deepspeed_all_cores,
  torch,
  native,
  native_rounding,
};
/// DeepSpeed's CPUAdam reads a weight, its gradient and two states in fp32, and writes all but the
/// gradient.
inline constexpr std::int64_t kCpuAdamBytes = 28;
enum class Collective : std::uint8_t {
  all_reduce,
  reduce_scatter,
  all_gather,
  broadcast,
  all_to_all,
  send,  ///< to the one rank that follows, or the one before
  ring,  ///< sends its payload to the next rank and takes another's, until each has been everywhere
};

inline constexpr std::int32_t kUnnamed = -1;

struct Event {
  enum class Kind : std::uint8_t {
    alloc,           ///< bytes of category
    free,            ///< bytes of category
    blocks,          ///< `count` allocations and frees, from Program::blocks[first] on
    compute,         ///< `count` kernels on the compute stream, from Program::kernels[first] on
    collective,      ///< payload bytes among all ranks of the group
    copy,            ///< bytes over the host or NVMe link
    wait,            ///< the compute stream waits for what `stream` has been given so far; copies:
                     ///< but for the last `bytes` of it
    synchronize,     ///< the host waits for the compute stream
    follow,          ///< `stream` waits for the compute stream
    mark,            ///< the host records how far it has given work to `stream`: `count` marks
    throttle,        ///< the host waits for the oldest marks of the same name and forgets them,
                     ///< where there are `count` or more
    host_optimizer,  ///< the host updates `bytes` elements (passes, native: moves so many bytes),
                     ///< when gradients have reached it; with `ahead`: those of the step before,
                     ///< beside what the GPU does
    begin_phase,
    end_phase,
    begin_repeat,  ///< the events up to the matching end happen `count` times
    end_repeat,
    once,             ///< here one of the steps does what Program::once[count] lists
    empty_cache,      ///< the allocator gives cached segments back to the driver
    gradients_whole,  ///< every gradient of the step exists now; reduction may shrink them
  };
  Kind kind = Kind::alloc;
  Category category = Category::other;
  Phase phase = Phase::forward;
  Stream stream = Stream::compute;  ///< alloc, free: whose pool of the caching allocator
  /// free: another stream that the block is used on (record_stream): the allocator has it back when
  /// that stream has come to where it is now. The pool's own: at once.
  Stream used_on = Stream::compute;
  LinkKind link = LinkKind::gpu;
  Collective collective = Collective::all_reduce;
  Group group = Group::data;  ///< collective: among whom
  bool to_device = false;     ///< copy: direction
  std::int64_t bytes = 0;
  /// Repetitions; calls that make up a collective or copy; resident: blocks of `bytes` each.
  std::int64_t count = 1;
  std::int32_t first = 0;  ///< blocks, compute: the first row of the table
  /// collective, copy: does not read what the compute stream is making, so that it can start
  /// before.
  bool ahead = false;
  /// collective: `count` buckets, each sent when the phase so far has made it. With `ahead`: given
  /// when the phase began, beside all of it so far, and waited for here.
  bool bucketed = false;
  bool once_a_step = false;  ///< collective: no micro-batch of a pipeline waits for it again
  /// collective: sends and receives that the host gives one by one to make up a call.
  std::int64_t messages = 0;
  /// throttle: marks that the stream has passed count until forgotten, one at a time.
  bool keeps_passed = false;
  HostOptimizer optimizer = HostOptimizer::deepspeed;  ///< host_optimizer
  std::string_view what;                               ///< a literal: "gradient reduce-scatter"
  std::int32_t name = kUnnamed;                        ///< alloc, free, mark, throttle
  bool older = false;           ///< free: not the newest block of that name but the one before
  bool oldest = false;          ///< free: the oldest block of that name and size
  std::int32_t first_step = 1;  ///< alloc, free: the steps before it leave it out
};

/// Where it is chance at which of several places of a step something is done: here.
enum class Chance : std::uint8_t {
  none,     ///< at this place, and no other
  soonest,  ///< at the first of them
  usual,
  latest,
};

/// Allocations and frees of one step only. They are no part of the steady state: a simulation of
/// that begins with what they leave.
struct EventsOfOneStep {
  std::int64_t step = 1;
  std::vector<Event> events;
  bool makes_residents = true;  ///< in the first step: what they allocate is there from then on
  std::int64_t workspace = 0;   ///< what they allocate is one of the workspaces of so many bytes
  Chance chance = Chance::none;
  bool first_time = false;  ///< in the first iteration of what repeats there alone
};

/// What a rank holds in its host's memory and on NVMe.
struct HostMemory {
  std::int64_t pageable = 0;
  std::int64_t pinned = 0;  ///< as allocated: blocks of the pinning allocator are rounded
  std::int64_t nvme = 0;
  std::int64_t total() const { return pageable + pinned; }
};

/// What a process that keeps something on its host loads beside, of code and of drivers' pages:
/// each has what the one before it has.
enum class HostLibraries : std::uint8_t {
  untold,     ///< of frameworks that are not measured
  products,   ///< kernels of matrix products
  attention,  ///< fused attention too
};

struct Program {
  /// Allocations that exist when a steady-state step begins, in the order they are made.
  /// Neighbours with the same count are the tensors of layers: layer by layer.
  std::vector<Event> resident;
  /// Where it differs: the allocations and frees that build the model, in place of the residents
  /// that exist before the first step.
  std::vector<Event> build;
  /// What building leaves cached is there for the first step.
  bool keeps_build_cache = false;
  /// What is done in one step only, such as making optimizer states. Residents of a category that
  /// the first step makes do not exist before it.
  std::vector<EventsOfOneStep> once;
  /// What chance may keep alive on top of this when the allocator's caches fill: for upper bounds.
  std::int64_t held_at_most = 0;
  std::vector<Event> events;
  std::vector<Event> blocks;    ///< what blocks events name: allocations and frees
  std::vector<Kernel> kernels;  ///< what compute events name
  std::size_t run_kernels = 0;  ///< of them those of the run that it was lowered from: the first
  /// By Group. Those without ranks are the whole cluster.
  std::array<GroupShape, kGroupCount> groups{};
  /// In managed memory: the GPU's kernels draw it there, and it gives way to the allocator.
  std::int64_t managed = 0;
  std::int64_t model_bytes = 0;  ///< live after the model (and its wrapper) is built
  /// Allocated bytes are those of the allocator's blocks, which may be larger than what was asked
  /// for: where large tensors grow bit by bit that adds up.
  bool counts_blocks = false;
  /// Steps replay CUDA graphs, whose pool holds what they need (Stream::graphs).
  bool replays_graphs = false;
  /// Everything is allocated from one block of just the size it needs: no caching allocator.
  bool one_block = false;
  HostMemory host;
  HostLibraries libraries = HostLibraries::untold;
  bool reads_past_host = false;  ///< the library that moves files to GPUs and back is loaded
  Source optimizer_source = Source::exact;  ///< of the bytes of optimizer states
  /// Above 1: how parameters and states are laid out rests on the framework's source alone, and
  /// published runs took up to so many times what it predicts; for upper bounds.
  double most_over = 1;
  /// Above 1: libraries ask the allocator for workspaces that are not described; for the upper
  /// bound of reserved memory.
  double most_workspaces_over = 1;
  std::int64_t communicator_bytes = 0;  ///< of exchanges, beside PyTorch's allocator
  std::int64_t library_at_most = 0;     ///< of buffers that a library may take, or not
  /// Processes of engines on the same GPU, each by how many GPUs the engine is over.
  std::vector<std::int64_t> engines_beside;
  std::int64_t processes_beside = 0;  ///< more processes like the rank's own, of other models
  std::int64_t rank = 0;              ///< the rank this program is written for
  /// What share of the time of its own passes the rank waits for other pipeline stages.
  double bubble_share = 0;
  /// The host makes a step ready once and then gives all of it: phases are no more to it than the
  /// kernels that they start.
  bool ready_once = false;
};

/// Index of the event that ends the repetition which begins at `begin`.
std::size_t matching_end(const std::vector<Event>& events, std::size_t begin);

/// Calls visit(event, times) for the events of a step in order: `times` is how often repetitions
/// make the event happen.
template <typename Visit>
void for_each_event(const Program& program, Visit&& visit) {
  std::vector<std::int64_t> times{1};
  for (const Event& e : program.events) {
    if (e.kind == Event::Kind::begin_repeat) times.push_back(checked_mul(times.back(), e.count));
    if (e.kind == Event::Kind::end_repeat) times.pop_back();
    visit(e, times.back());
  }
}

/// Calls visit(kernel) for the kernels of a compute event.
template <typename Visit>
void for_each_kernel(const Program& program, const Event& compute, Visit&& visit) {
  for (std::int64_t i = 0; i < compute.count; ++i)
    visit(program.kernels[static_cast<std::size_t>(compute.first + i)]);
}

/// Calls visit(allocation or free) for those of a blocks event.
template <typename Visit>
void for_each_block(const Program& program, const Event& blocks, Visit&& visit) {
  for (std::int64_t i = 0; i < blocks.count; ++i)
    visit(program.blocks[static_cast<std::size_t>(blocks.first + i)]);
}

/// All bytes of a list of residents.
std::int64_t total_bytes(const std::vector<Event>& residents);

/// Appends events. Freed and allocated bytes are the caller's to balance.
class ProgramBuilder {
 public:
  explicit ProgramBuilder(Program& program) : program_(program) {}

  void resident(Category category, std::int64_t bytes, std::int64_t count = 1);
  void alloc(Category category, std::int64_t bytes, Stream pool = Stream::compute);
  void free(Category category, std::int64_t bytes, Stream pool = Stream::compute);
  /// Of a block that another stream than its pool's works on.
  void free_used_on(Stream user, Category category, std::int64_t bytes,
                    Stream pool = Stream::compute);
  void alloc_named(Category category, std::int64_t bytes, std::int32_t name,
                   Stream pool = Stream::compute);
  void free_named(Category category, std::int64_t bytes, std::int32_t name,
                  Stream pool = Stream::compute);
  /// Not the newest block of that name but the one before.
  void free_older(Category category, std::int64_t bytes, std::int32_t name);
  /// The oldest block of that name and size; kUnnamed: of those of the category without one.
  void free_oldest(Category category, std::int64_t bytes, std::int32_t name,
                   Stream pool = Stream::compute);
  /// `count` allocations and frees of the table, from number `first` on.
  void blocks(std::int32_t first, std::int64_t count);
  /// Here step number `step` does what `events` list.
  void once(std::int64_t step, std::vector<Event> events, Chance chance = Chance::none);
  /// Here the first step makes one of the residents that are workspaces of so many bytes.
  void makes_workspace(std::int64_t bytes);
  /// Here the first step does what `events` list; nothing of it stays.
  void in_first_step(std::vector<Event> events);
  /// The first time that kernel `id` is met, a block of so many bytes comes and goes.
  void times_kernel(std::int32_t id, std::int64_t bytes);
  void add(const Event& event) { program_.events.push_back(event); }
  /// The allocation or free that was added last is none of the steps' before that one.
  void from_step(std::int32_t step) { program_.events.back().first_step = step; }
  /// Allocated and freed at once: counts only for the peak.
  void transient(Category category, std::int64_t bytes, Stream pool = Stream::compute);
  /// Makes kernels known; returns the number of the first.
  std::int32_t add_kernels(const std::vector<Kernel>& kernels);
  /// `count` known kernels from number `first` on.
  void compute(std::int32_t first, std::int64_t count);
  void compute(const std::vector<Kernel>& kernels) {
    compute(add_kernels(kernels), static_cast<std::int64_t>(kernels.size()));
  }
  /// `calls` of work of the host that starts nothing on the GPU.
  void host_work(Issue issue, std::int32_t calls);
  /// Reduces what the compute stream has made so far.
  void collective(Collective kind, std::int64_t bytes, std::string_view what,
                  std::int64_t calls = 1, Group group = Group::data);
  /// Reduces what the phase under way has made, bucket by bucket while it made it.
  void reduce_buckets(Collective kind, std::int64_t bytes, std::string_view what,
                      std::int64_t buckets, Group group = Group::data);
  /// Gathers what the phase began to gather, beside what it has done so far, and waits for it.
  void gather_buckets(std::int64_t bytes, std::string_view what, std::int64_t buckets, Group group);
  /// Gathers what does not depend on the computation under way.
  void gather_ahead(std::int64_t bytes, std::string_view what, Group group = Group::data);
  /// What the network itself exchanges, where its operations stand. `messages`: Event::messages.
  void exchange(Collective kind, Group group, std::int64_t bytes, std::string_view what, bool ahead,
                std::int64_t messages = 0);
  /// `but_last`: bytes of copies, the last ones, that are not waited for.
  void wait(Stream stream, std::int64_t but_last = 0);
  void synchronize();
  void follow(Stream stream);
  void mark(Stream stream, std::int32_t name, std::int64_t marks = 1);
  /// `keeps_passed`: see Event.
  void throttle(std::int32_t name, std::int64_t marks, bool keeps_passed);
  void host_optimizer(HostOptimizer optimizer, std::int64_t elements, bool ahead = false);
  void copy(LinkKind link, bool to_device, std::int64_t bytes, std::string_view what);
  /// To the GPU, before the computation under way is done.
  void fetch_ahead(LinkKind link, std::int64_t bytes, std::string_view what);
  /// A copy from the host's memory that nothing of the step waits for.
  void store_ahead(LinkKind link, std::int64_t bytes, std::string_view what);
  void begin_phase(Phase phase);
  void end_phase(Phase phase);
  void begin_repeat(std::int64_t count);
  void end_repeat();
  void empty_cache();
  void gradients_whole();

 private:
  Program& program_;
  std::set<std::int32_t> timed_;  ///< kernels
};

}  // namespace shardplan
