#include "trainers/bookkeeping.h"

#include <utility>
#include <vector>

#include "trainers/description.h"

namespace shardplan {

void add_trainer_work(Program& program, const Model& model, const Plan& plan) {
  if (!plan.trainer->waits_for_loss) return;
  Event wait;
  wait.kind = Event::Kind::synchronize;
  // A turn of a Python loop for each tensor: counting operations and setting modules to training
  // took 1.1 ms for 146 tensors and 3.5 ms for 394 on an idle CPU.
  Kernel accounts;
  accounts.issue = Issue::loop;
  accounts.calls = static_cast<std::int32_t>(model.tensor_count());
  Event work;
  work.kind = Event::Kind::compute;
  work.first = static_cast<std::int32_t>(program.kernels.size());
  program.kernels.push_back(accounts);

  std::vector<Event> events;
  events.reserve(program.events.size());
  for (const Event& e : program.events) {
    events.push_back(e);
    if (e.kind != Event::Kind::end_phase || e.phase != Phase::backward) continue;
    events.push_back(wait);
    events.push_back(work);
  }
  program.events = std::move(events);
}

}  // namespace shardplan
