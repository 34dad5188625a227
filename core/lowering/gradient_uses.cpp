#include "lowering/gradient_uses.h"

#include <utility>

#include "frameworks/registry.h"
#include "program/compiled/breaks.h"

namespace shardplan {

bool breaks_in_layers(const Model& model, const Plan& plan) {
  if (!plan.compile) return false;
  const FrameworkTraits& framework = traits_of(plan);
  return compiled::breaks_in_layers(model) || framework.breaks_at_modules(plan) ||
         framework.breaks_at_blocks(plan);
}

bool ends_apart(const Model& model, const Plan& plan, bool told_leaf) {
  return plan.compiles_whole() &&
         (told_leaf || model.facts.breaks_between_layers || breaks_in_layers(model, plan));
}

bool gradients_at_once(const Model& model, const Plan& plan) {
  if (!plan.compiles_whole() || model.facts.breaks_between_layers) return false;
  return !breaks_in_layers(model, plan) && traits_of(plan).graph_bytes(plan) == 0;
}

std::vector<std::int32_t> gradient_uses(const Model& model, const ModelRun& run,
                                        const std::vector<SegmentRepeat>& repeats) {
  std::vector<std::int32_t> uses(model.parameters.size(), 0);
  std::vector<bool> counted(run.segments.size(), false);
  for (const SegmentRepeat& repeat : repeats) {
    if (counted[repeat.segment]) continue;
    counted[repeat.segment] = true;
    for (const TapeEvent& e : run.segments[repeat.segment].backward.backward)
      if (e.kind == TapeEvent::Kind::gradient) ++uses[static_cast<std::size_t>(e.id)];
  }
  return uses;
}

void emit_waiting(ProgramBuilder& b, GradientUse use, std::int64_t bytes, Stream pool) {
  if (use == GradientUse::first)
    b.alloc(Category::gradients, bytes, pool);
  else
    b.transient(Category::gradients, bytes, pool);
}

GradientUse GradientUses::next(ParameterId id) {
  const std::int32_t all = all_[static_cast<std::size_t>(id)];
  if (all < 2) return GradientUse::only;
  std::int32_t& left = left_[static_cast<std::size_t>(id)];
  const bool first = left == all;
  if (--left > 0) return first ? GradientUse::first : GradientUse::between;
  left = all;
  return GradientUse::last;
}

GradientUse GradientUses::arrive(ProgramBuilder& b, ParameterId id, std::int64_t bytes, bool adds) {
  const GradientUse use = next(id);
  Arrived& arrived = arrived_[static_cast<std::size_t>(id)];
  if (waits(use)) {
    emit_waiting(b, use, bytes, pool_);
  } else if (use == GradientUse::last && pool_ == Stream::graphs) {
    b.alloc(Category::gradients, bytes, table_pool_);
    b.alloc(Category::gradients, bytes);
    beside_graphs_ += bytes;
    b.free_oldest(Category::gradients, bytes, kUnnamed, table_pool_);
    b.free(Category::gradients, bytes, pool_);
  } else {
    b.alloc(Category::gradients, bytes, pool_);
    arrived = {use == GradientUse::last ? 2 : 1, adds};
  }
  return use;
}

void GradientUses::added(ProgramBuilder& b, ParameterId id, std::int64_t bytes) {
  const Arrived arrived = std::exchange(arrived_[static_cast<std::size_t>(id)], {});
  for (std::int64_t k = arrived.adds ? 0 : 1; k < arrived.count; ++k)
    b.free(Category::gradients, bytes, pool_);
}

void GradientUses::summed(ProgramBuilder& b, ParameterId id, std::int64_t bytes) {
  Arrived& arrived = arrived_[static_cast<std::size_t>(id)];
  if (arrived.count < 2 || arrived.adds) return added(b, id, bytes);
  b.alloc(Category::gradients, bytes, pool_);
  for (; arrived.count > 0; --arrived.count)
    b.free_oldest(Category::gradients, bytes, kUnnamed, pool_);
}

}  // namespace shardplan
