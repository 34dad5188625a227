#include "trainers/bookkeeping.h"

#include <utility>
#include <vector>

#include "trainers/description.h"

namespace shardplan {
namespace {

/// peft 0.21 puts ten modules beside a linear that it adapts (dictionaries of matrices, of
/// dropouts, of embeddings), two of which hold a matrix.
constexpr std::int64_t kOthersBesideLinear = 8;

/// Modules that each walk over the network's modules passes: about one for each tensor.
std::int64_t modules_walked(const Model& model) {
  std::int64_t matrices = 0;
  model.for_each_distinct([&](const Parameter& p, std::int64_t repeat) {
    if (p.adapter) matrices = checked_add(matrices, repeat);
  });
  return checked_add(model.tensor_count(), checked_mul(kOthersBesideLinear, matrices / 2));
}

}  // namespace

void add_trainer_work(Program& program, const Model& model, const Plan& plan) {
  if (!plan.trainer->waits_for_loss) return;
  Event wait;
  wait.kind = Event::Kind::synchronize;
  // A turn of a Python loop for each module: counting operations and setting modules to training
  // took 1.1 ms for 146 tensors and 3.5 ms for 394 on an idle CPU, and with walks for clipping and
  // for the gradients' end 7.4 µs for each of peft's modules.
  Kernel accounts;
  accounts.issue = Issue::loop;
  accounts.calls = static_cast<std::int32_t>(modules_walked(model));
  Event work;
  work.kind = Event::Kind::compute;
  work.first = static_cast<std::int32_t>(program.kernels.size());
  if (plan.trainer->walks_modules) program.kernels.push_back(accounts);

  std::vector<Event> events;
  events.reserve(program.events.size());
  for (const Event& e : program.events) {
    events.push_back(e);
    if (e.kind != Event::Kind::end_phase || e.phase != Phase::backward) continue;
    events.push_back(wait);
    if (plan.trainer->walks_modules) events.push_back(work);
  }
  program.events = std::move(events);
}

}  // namespace shardplan
