#include "frameworks/deepspeed/flat_states.h"

#include <algorithm>

#include "frameworks/deepspeed/layout.h"
#include "lowering/optimizer_kernels.h"
#include "lowering/optimizer_memory.h"
#include "lowering/tensors.h"
#include "trainers/description.h"

namespace shardplan {
namespace {

bool is_special(const Engine& engine, const Parameter& p) {
  const auto takes = engine.optimizer->kind->takes;
  return takes != nullptr && takes(p, Given::flat);
}

/// Calls visit(tensor, repeat) for the trainable parameters that the optimizer treats in its own
/// way.
template <typename Visit>
void for_each_special(const Model& model, const Engine& engine, Visit&& visit) {
  model.for_each_distinct([&](const Parameter& p, std::int64_t repeat) {
    if (!p.trainable || !is_special(engine, p)) return;
    visit(Updated{.given = Given::flat, .parameter = &p, .numel = p.numel, .whole = p.numel},
          repeat);
  });
}

/// Weights of norms and biases do not decay (transformers/trainer.py, get_decay_parameter_names).
bool decays_weight(const Parameter& p) {
  return p.kind != ParameterKind::norm && p.kind != ParameterKind::bias;
}

Updated flat(std::int64_t elements) {
  return {.given = Given::flat, .numel = elements, .whole = elements};
}

}  // namespace

std::vector<Updated> whole_tensors(const Model& model) {
  std::vector<Updated> list;
  for (const ParameterGroup& group : model.groups)
    for (std::int64_t layer = 0; layer < group.repeat; ++layer)
      for (std::int32_t i = group.first; i < group.first + group.count; ++i) {
        const Parameter& p = model.parameters[static_cast<std::size_t>(i)];
        if (!p.trainable) continue;
        list.push_back({.given = Given::flat,
                        .parameter = &p,
                        .numel = p.numel,
                        .whole = p.numel,
                        .updates_special = false});
      }
  return list;
}

std::vector<Updated> partitions_of(const Model& model, const Engine& engine, std::int64_t rank,
                                   const std::vector<std::int64_t>& partitions,
                                   bool updates_special) {
  std::vector<Updated> list;
  if (engine.optimizer->kind->takes == nullptr) {
    for (const std::int64_t elements : partitions) list.push_back(flat(elements));
    return list;
  }
  for (const bool special : {true, false}) {
    const FlatLayout layout(model, engine.ranks,
                            [&](const Parameter& p) { return is_special(engine, p) == special; });
    Updated part = flat(layout.partition());
    part.whole = layout.touched(rank);
    part.special = special;
    part.updates_special = updates_special;
    list.push_back(part);
  }
  return list;
}

bool groups_by_decay(const Plan& plan) {
  return plan.framework.deepspeed.program_makes_optimizer() ? plan.trainer->decays_apart
                                                            : plan.trainer->config_decays_apart;
}

std::vector<Updated> shards_of(const Model& model, const Engine& engine, std::int64_t elements) {
  std::int64_t special = 0;
  for_each_special(model, engine, [&](const Updated& t, std::int64_t repeat) {
    const std::int64_t shard = ceil_div(t.numel, engine.ranks_of(*t.parameter));
    special = checked_add(special, checked_mul(shard, repeat));
  });
  std::vector<Updated> list;
  if (special > 0) {
    list.push_back(flat(special));
    list.back().special = true;
  }
  list.push_back(flat(elements - special));
  return list;
}

std::vector<Updated> sub_groups(const Model& model, const Plan& plan, const Engine& engine,
                                std::int64_t limit) {
  std::vector<Updated> list;
  const auto add = [&](std::int64_t ranks, bool special, const auto& takes) {
    for (const std::int64_t size : sub_group_sizes(model, ranks, limit, takes)) {
      list.push_back(flat(size));
      list.back().special = special;
    }
  };
  const bool by_decay = groups_by_decay(plan);
  const bool divides_experts = engine.expert_ranks > 0;
  const auto is_expert = [&](const Parameter& p) {
    return divides_experts && p.kind == ParameterKind::expert;
  };
  for (const bool special : {true, false})
    for (const bool decaying : {true, false})
      add(engine.ranks, special, [&](const Parameter& p) {
        const bool decays = !by_decay || decays_weight(p);
        return is_special(engine, p) == special && decays == decaying && !is_expert(p);
      });
  if (divides_experts) add(engine.expert_ranks, false, is_expert);
  return list;
}

StateBytes states_of(const Engine& engine, const std::vector<Updated>& updated) {
  StateBytes sum;
  for (const Updated& t : updated) sum += state_bytes(t, *engine.optimizer, engine.state_types);
  return sum;
}

std::int64_t sub_group_states(const Engine& engine, std::int64_t elements) {
  return state_bytes(flat(elements), *engine.optimizer, engine.state_types).total();
}

std::vector<Event> state_blocks(const Engine& engine, const std::vector<Updated>& updated) {
  std::vector<Event> blocks;
  for (const Updated& t : updated)
    for_each_state(t, *engine.optimizer, engine.state_types, [&](std::int64_t bytes, bool paged) {
      if (!paged) append_tensors(blocks, Category::optimizer_states, bytes, 1);
    });
  return blocks;
}

void add_states(Program& program, const Engine& engine, const StateBytes& states) {
  ProgramBuilder(program).resident(Category::optimizer_states, states.resident);
  program.host.pageable += states.paged;
  program.managed += states.paged;
  program.optimizer_source = states_source(*engine.optimizer, Given::flat);
}

std::int64_t step_temporaries(const Engine& engine, const std::vector<Updated>& updated) {
  std::int64_t sum = 0;
  for (const Temporary& temporary : variant_of(*engine.optimizer).temporaries) {
    std::int64_t largest = 0, all = 0;
    for (const Updated& t : updated) {
      const std::int64_t bytes =
          temporary_bytes(temporary, t, *engine.optimizer, engine.state_types);
      largest = std::max(largest, bytes);
      all = checked_add(all, bytes);
    }
    const bool listed = temporary.of == Temporary::Of::all && updated.front().parameter != nullptr;
    sum = checked_add(sum, checked_mul(temporary.count, listed ? all : largest));
  }
  return sum;
}

std::int64_t special_temporaries(const Model& model, const Engine& engine) {
  std::int64_t most = 0;
  for_each_special(model, engine, [&](const Updated& t, std::int64_t) {
    most = std::max(most, flat_temporary_bytes(t, *engine.optimizer, engine.state_types));
  });
  return most;
}

std::vector<Kernel> special_kernels(const Model& model, const Engine& engine) {
  std::vector<Kernel> kernels;
  for_each_special(model, engine, [&](const Updated& t, std::int64_t repeat) {
    const std::vector<Kernel> own =
        product_kernels(t, ceil_div(repeat, engine.ranks), *engine.optimizer, engine.state_types);
    kernels.insert(kernels.end(), own.begin(), own.end());
  });
  return kernels;
}

}  // namespace shardplan
