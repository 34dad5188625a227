#include "report/found_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/diagnostic.h"
#include "json/reader.h"
#include "render/describe.h"

namespace shardplan::report {
namespace {

constexpr std::array kFits{Fit::fits, Fit::tight, Fit::does_not_fit, Fit::unknown};
constexpr std::array kSources{Source::exact, Source::modelled, Source::calibrated, Source::measured,
                              Source::assumed};

template <typename T>
T there(const ObjectReader& from, const char* key, std::optional<T> value) {
  if (!value) from.fail(key, "missing");
  return *std::move(value);
}

std::int64_t amount(ObjectReader& from, const char* key) {
  return there(from, key, from.integer(key));
}
ObjectReader block(ObjectReader& from, const char* key) {
  return there(from, key, from.object(key));
}

template <typename Values>
auto named(ObjectReader& from, const char* key, const Values& values) {
  std::vector<std::string> names;
  for (const auto value : values) names.emplace_back(name_of(value));
  const std::string name = there(from, key, from.choice(key, names));
  return values[static_cast<std::size_t>(std::find(names.begin(), names.end(), name) -
                                         names.begin())];
}

/// Of each item of the list at `key`, what `read` makes of it.
template <typename Read>
auto list(ObjectReader& from, const char* key, const Read& read) {
  std::vector<decltype(read(std::declval<ObjectReader&>()))> all;
  const Json* items = from.array(key);
  if (items == nullptr) from.fail(key, "missing");
  for (std::size_t i = 0; i < items->size(); ++i) {
    ObjectReader item((*items)[i], from.file(), fmt::format("{}[{}]", from.path_of(key), i));
    all.push_back(read(item));
  }
  return all;
}

/// GPU, host and NVMe together, as `overall` has it.
Fit fit_of(ObjectReader verdict) {
  if (there(verdict, "fits", verdict.boolean("fits"))) return Fit::fits;
  ObjectReader limit = block(verdict, verdict.text("limited_by").value_or("gpu").c_str());
  return named(limit, "verdict", kFits);
}

FoundPlan read_plan(ObjectReader& from, const std::vector<std::string>& axes) {
  FoundPlan plan;
  ObjectReader values = block(from, "values");
  for (const std::string& axis : axes)
    plan.values.push_back(there(values, axis.c_str(), values.text(axis)));
  ObjectReader estimate = block(from, "estimate");
  plan.fit = fit_of(block(estimate, "verdict"));
  ObjectReader gpu = block(estimate, "gpu");
  ObjectReader peak = block(gpu, "peak");
  ObjectReader device = block(peak, "device");
  plan.device = amount(device, "point");
  plan.device_upper = amount(device, "upper");
  ObjectReader host = block(estimate, "host");
  plan.host = amount(host, "bytes_per_node");
  ObjectReader time = block(estimate, "time");
  plan.step_seconds = there(time, "step_seconds", time.number("step_seconds"));
  plan.tokens_per_second = there(time, "tokens_per_second", time.number("tokens_per_second"));
  plan.time_source = named(time, "source", kSources);
  if (auto error = time.object("error"))
    plan.error = StepError{.kind = error->text("kind").value_or(""),
                           .runs = error->integer("runs").value_or(0),
                           .mean = error->number("mean").value_or(0),
                           .largest = error->number("largest").value_or(0)};
  ObjectReader cost = block(from, "cost");
  plan.gpu_hours_per_billion_tokens = cost.number("gpu_hours_per_billion_tokens");
  return plan;
}

void check_same(ObjectReader& from, const Job& job) {
  ObjectReader model = block(from, "model");
  const std::string name = there(model, "name", model.text("name"));
  if (amount(model, "parameters") != job.model.parameter_count())
    from.fail("model", fmt::format("a search for {}", name),
              fmt::format("the job's model, {} ({} parameters)", job.model.facts.name,
                          job.model.parameter_count()));
  const std::string cluster = there(from, "cluster", from.text("cluster"));
  if (cluster != describe_cluster(job.plan.cluster))
    from.fail("cluster", fmt::format("a search on {}", cluster),
              fmt::format("the job's cluster, {}", describe_cluster(job.plan.cluster)));
}

}  // namespace

FoundSearch read_search(const Json& document, const std::string& file, const Job& job) {
  ObjectReader from(document, file);
  there(from, "schema", from.choice("schema", {"shardplan.search/1"}));
  check_same(from, job);
  FoundSearch found;
  found.objective =
      there(from, "objective", from.choice("objective", {"throughput", "cost", "gpus", "memory"}));
  found.candidates = amount(from, "candidates");
  found.estimated = amount(from, "estimated");
  found.simulated = amount(from, "simulated");
  found.interrupted = there(from, "interrupted", from.boolean("interrupted"));
  found.usable = amount(from, "usable_bytes");
  const Json* axes = from.find("axes");
  if (axes == nullptr || !axes->is_object()) from.fail("axes", "missing", "an object");
  for (const auto& [axis, values] : axes->items()) found.axes.push_back(axis);
  const auto plan = [&](ObjectReader& item) { return read_plan(item, found.axes); };
  const auto plan_at = [&](const char* key) {
    std::optional<ObjectReader> item = from.object(key);
    return item ? std::optional(plan(*item)) : std::nullopt;
  };
  found.front = list(from, "front", plan);
  found.near_miss = plan_at("near_miss");
  found.beyond_limits = plan_at("beyond_limits");
  found.ruled_out = list(from, "ruled_out", [](ObjectReader& item) {
    return RuledOut{there(item, "rule", item.text("rule")), amount(item, "count")};
  });
  found.others = list(from, "other_choices", [](ObjectReader& item) {
    return FoundOther{there(item, "axis", item.text("axis")),
                      there(item, "value", item.text("value")), named(item, "verdict", kFits),
                      amount(item, "device_bytes_added"),
                      there(item, "slowdown", item.number("slowdown"))};
  });
  return found;
}

}  // namespace shardplan::report
