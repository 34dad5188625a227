#include "job/read_schedule.h"

namespace shardplan::validator {
namespace {

constexpr double kLargest = 1e6;
constexpr std::int64_t kMostSteps = 1'000'000'000;

Warmup read_warmup(ObjectReader& p, double rate) {
  Warmup w;
  w.smallest = p.number("warmup_min_lr", 0, kLargest).value_or(0);
  w.largest = p.number("warmup_max_lr", 0, kLargest).value_or(rate);
  w.steps = p.integer("warmup_num_steps", 1, kMostSteps).value_or(w.steps);
  w.logarithmic = p.choice("warmup_type", {"log", "linear"}).value_or("log") == "log";
  return w;
}

OneCycleLr read_one_cycle(ObjectReader& p, double rate) {
  OneCycleLr c;
  c.smallest = p.number("cycle_min_lr", 0, kLargest).value_or(0);
  c.largest = p.number("cycle_max_lr", 0, kLargest).value_or(rate);
  c.first_steps = p.integer("cycle_first_step_size", 1, kMostSteps).value_or(c.first_steps);
  c.second_steps = p.integer("cycle_second_step_size", 1, kMostSteps).value_or(c.first_steps);
  c.first_stairs = p.integer("cycle_first_stair_count", 0, kMostSteps).value_or(0);
  c.second_stairs = p.integer("cycle_second_stair_count", 0, kMostSteps).value_or(c.first_stairs);
  c.decay_rate = p.number("decay_lr_rate", 0, kLargest).value_or(0);
  c.decay_steps = p.integer("decay_step_size", 0, kMostSteps).value_or(0);
  c.cycle_momentum = p.boolean("cycle_momentum").value_or(true);
  c.smallest_momentum = p.number("cycle_min_mom", 0, 1).value_or(c.smallest_momentum);
  c.largest_momentum = p.number("cycle_max_mom", 0, 1).value_or(c.largest_momentum);
  c.momentum_decay_rate = p.number("decay_mom_rate", 0, kLargest).value_or(0);
  return c;
}

LrRangeTest read_range_test(ObjectReader& p) {
  LrRangeTest t;
  t.smallest = p.number("lr_range_test_min_lr", 0, kLargest).value_or(t.smallest);
  t.step_size = p.integer("lr_range_test_step_size", 1, kMostSteps).value_or(t.step_size);
  t.step_rate = p.number("lr_range_test_step_rate", 0, kLargest).value_or(t.step_rate);
  t.staircase = p.boolean("lr_range_test_staircase").value_or(false);
  return t;
}

}  // namespace

Schedule read_schedule(ObjectReader& run, double rate) {
  auto scheduler = run.object("scheduler");
  if (!scheduler) return ConstantLr{rate};
  const auto type =
      scheduler->choice("type", {"WarmupLR", "WarmupDecayLR", "OneCycle", "LRRangeTest"});
  if (!type) scheduler->fail("type", "missing", "WarmupLR, WarmupDecayLR, OneCycle or LRRangeTest");
  static const Json kEmpty = Json::object();
  const Json* value = scheduler->find("params");
  ObjectReader params(value == nullptr ? kEmpty : *value, scheduler->file(),
                      scheduler->path_of("params"));
  Schedule schedule;
  if (*type == "WarmupLR") {
    schedule = WarmupLr{read_warmup(params, rate)};
  } else if (*type == "WarmupDecayLR") {
    const auto total = params.integer("total_num_steps", 1, kMostSteps);
    if (!total) params.fail("total_num_steps", "missing", "the steps of the whole run");
    schedule = WarmupDecayLr{read_warmup(params, rate), *total};
  } else if (*type == "OneCycle") {
    schedule = read_one_cycle(params, rate);
  } else {
    schedule = read_range_test(params);
  }
  params.finish();
  scheduler->finish();
  return schedule;
}

}  // namespace shardplan::validator
