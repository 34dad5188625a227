#include "load/parallel.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "frameworks/registry.h"
#include "load/options.h"
#include "options/limits.h"
#include "options/tables.h"
#include "parallel/degrees.h"

namespace shardplan {
namespace {

/// The keys of a ds_config that say a degree.
struct ConfigDegree {
  std::string_view pointer;
  Degree degree;
};
constexpr std::array kConfigDegrees{
    ConfigDegree{"/tensor_parallel/autotp_size", Degree::tensor},
    ConfigDegree{"/sequence_parallel_size", Degree::sequence},
    ConfigDegree{"/expert_parallel/autoep_size", Degree::expert},
};

/// What the file says; 1 where it is silent or wrong, which its own reader reports.
std::int64_t degree_in(const Json& ds_config, std::string_view pointer) {
  const Json::json_pointer path{std::string(pointer)};
  if (!ds_config.is_object() || !ds_config.contains(path)) return 1;
  const Json& value = ds_config.at(path);
  if (!value.is_number_integer()) return 1;
  const auto degree = value.get<std::int64_t>();
  if (degree < 1 || degree > kLargestDegree) return 1;
  const auto enabled = path.parent_pointer() / "enabled";
  const bool is_off = ds_config.contains(enabled) && ds_config.at(enabled) == Json(false);
  return is_off ? 1 : degree;
}

void take_degrees_of(const Json& ds_config, ObjectReader& reader, Parallel& parallel) {
  for (const auto& [pointer, degree] : kConfigDegrees) {
    const std::int64_t theirs = degree_in(ds_config, pointer);
    std::int64_t& ours = parallel.*member_of(degree);
    if (theirs == 1) continue;
    if (reader.find(name_of(degree)) != nullptr && ours != theirs)
      reader.fail(
          name_of(degree),
          fmt::format("{} here, but {} in the ds_config has {}", ours, pointer.substr(1), theirs),
          "the same number in both");
    ours = theirs;
  }
}

void check_data(const ObjectReader& reader, std::int64_t data, const Parallel& parallel,
                std::int64_t world) {
  const std::int64_t product = checked_mul(data, parallel.model_ranks());
  if (product == world) return;
  const std::int64_t left = world / parallel.model_ranks();
  reader.fail(
      "data", fmt::format("the degrees multiply to {}, the cluster has {} GPUs", product, world),
      left * parallel.model_ranks() == world ? fmt::format("data = {}", left)
                                             : fmt::format("degrees that divide {}", world));
}

}  // namespace

Parallel read_parallel(ObjectReader& job, const Plan& plan, const Json& ds_config) {
  static const Json kEmpty = Json::object();
  const Json* value = job.find("parallel");
  ObjectReader reader(value == nullptr ? kEmpty : *value, job.file(), job.path_of("parallel"));
  Plan divided = plan;
  Parallel& parallel = divided.parallel;
  parallel = {};
  read_said(reader, parallel_table(), divided);
  const auto data = read_as<std::int64_t>(reader, info_of(parallel_table(), "data"));
  take_degrees_of(ds_config, reader, parallel);
  apply_rules(parallel_table(), divided,
              [&](std::string_view key) { return reader.find(key) == nullptr; });
  if (data) check_data(reader, *data, parallel, plan.cluster.world());
  reader.finish();
  return parallel;
}

void check_parallel(const ObjectReader& job, const Model& model, const Plan& plan) {
  if (!traits_of(plan).data_parallel && plan.cluster.world() != plan.parallel.tensor)
    job.fail("framework.name",
             fmt::format("'single' has no data parallelism, and the cluster has {} GPUs",
                         plan.cluster.world()),
             "ddp, fsdp2 or deepspeed, a tensor degree of all GPUs, or a cluster of one GPU");
  if (const auto problem = degree_problem(model, plan))
    job.fail(problem->key, problem->message, problem->expected);
}

}  // namespace shardplan
