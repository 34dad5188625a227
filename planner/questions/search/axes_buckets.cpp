// DeepSpeed's buckets and thresholds, in elements.
#include <fmt/format.h>

#include "questions/search/axes.h"

namespace shardplan {
namespace {

/// "500M", "67.1M", "40960"
std::string short_count(std::int64_t n) {
  if (n < 1'000'000) return fmt::format("{}", n);
  return fmt::format("{:.3g}M", static_cast<double>(n) / 1e6);
}

struct BucketAxis {
  std::string name, flag;
  std::int64_t ZeroOptions::*field;
  std::vector<std::int64_t> AxisValues::*asked;
  int first_stage;  ///< below it the setting does nothing
};

bool acts(const Plan& p, int first_stage) {
  const ZeroOptions* zero = zero_options(p);
  return zero != nullptr && zero->stage >= first_stage;
}

/// `usual` and the job's own value, unless values are asked for or nothing has buckets.
Axis bucket_axis(const BucketAxis& what, const Plan& base, const AxisValues& values,
                 std::vector<std::int64_t> usual) {
  const std::vector<std::int64_t>& asked = values.*what.asked;
  const std::int64_t own = base.framework.deepspeed.zero.*what.field;
  if (!searches(base, values, [](const FrameworkTraits& f) { return f.has_zero.get(); }))
    usual.clear();
  const std::vector<std::int64_t> all =
      asked.empty() ? sorted_values(std::move(usual), own) : sorted_values(asked);
  Axis axis;
  axis.name = what.name;
  axis.flag = what.flag;
  for (const std::int64_t n : all) axis.values.push_back(short_count(n));
  axis.apply = [all, field = what.field](Plan& p, std::size_t v) {
    p.framework.deepspeed.zero.*field = all[v];
  };
  axis.rules = {{fmt::format("{} has no effect {}: one value stands for all", what.name,
                             what.first_stage == 3 ? "below ZeRO stage 3" : "without ZeRO"),
                 "--zero-stages", [first = what.first_stage](const Plan& p, std::size_t value) {
                   return value > 0 && !acts(p, first);
                 }}};
  return axis;
}

/// With what HF Trainer's "auto" makes of the hidden size.
std::vector<std::int64_t> with_auto(std::vector<std::int64_t> usual, std::int64_t value) {
  if (value > 0) usual.push_back(value);
  return usual;
}

}  // namespace

Axis reduce_bucket_axis(const Model& model, const Plan& base, const AxisValues& values) {
  const std::int64_t h = model.facts.hidden;
  return bucket_axis({"reduce_bucket_size", "--reduce-buckets", &ZeroOptions::reduce_bucket_size,
                      &AxisValues::reduce_buckets, 1},
                     base, values, with_auto({50'000'000, 200'000'000, 500'000'000}, h * h));
}

Axis prefetch_bucket_axis(const Model& model, const Plan& base, const AxisValues& values) {
  const std::int64_t h = model.facts.hidden;
  return bucket_axis({"stage3_prefetch_bucket_size", "--prefetch-buckets",
                      &ZeroOptions::prefetch_bucket_size, &AxisValues::prefetch_buckets, 3},
                     base, values, with_auto({0, 50'000'000, 200'000'000}, h * h * 9 / 10));
}

Axis persistence_axis(const Model& model, const Plan& base, const AxisValues& values) {
  return bucket_axis(
      {"stage3_param_persistence_threshold", "--persistence-thresholds",
       &ZeroOptions::param_persistence_threshold, &AxisValues::persistence_thresholds, 3},
      base, values, with_auto({0, 100'000, 1'000'000}, 10 * model.facts.hidden));
}

}  // namespace shardplan
