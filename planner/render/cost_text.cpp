#include "render/cost_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/format.h"
#include "base/units.h"
#include "render/optional_json.h"
#include "render/table.h"

namespace shardplan {
namespace {

/// Whole from 100 on, else three significant figures.
std::string figure(double value) {
  if (std::abs(value) < 100) return fmt::format("{:.3g}", value);
  return format_count(static_cast<std::int64_t>(std::llround(value)));
}

/// "43 min", "2.1 h", "33 days": spans that nobody counts in seconds.
std::string span_words(double seconds) {
  constexpr double kMinute = 60, kHour = 3600, kDay = 86'400;
  if (seconds < 2 * kMinute) return format_seconds(seconds);
  if (seconds < 2 * kHour) return fmt::format("{:.0f} min", seconds / kMinute);
  if (seconds < 2 * kDay) return fmt::format("{:.1f} h", seconds / kHour);
  return fmt::format("{} days", figure(seconds / kDay));
}

/// ": list price of AWS p5.48xlarge, us-east-1, 2026-07-20", or the machine that stands for the
/// cluster's nodes.
std::string price_words(const ListPrice& p) {
  const std::string part =
      p.of_gpus == p.gpus ? "" : fmt::format(" ({} of its {} GPUs)", p.of_gpus, p.gpus);
  return fmt::format(": {} {} {}, {}, {}{}",
                     p.same_machine ? "list price of" : "such GPUs are cheapest as", p.provider,
                     p.machine, p.region, p.as_of, part);
}

/// Of the whole run: time, energy and money.
std::string whole_lines(const Cost& c) {
  std::string time = fmt::format("{} tokens: {} days, {} GPU-hours",
                                 format_parameters(static_cast<std::int64_t>(*c.tokens)),
                                 figure(*c.days), figure(*c.gpu_hours));
  if (c.kwh) time += fmt::format(", at most {} kWh", figure(*c.kwh));
  std::string lines = wrapped(time, "  ", "  ");
  const std::string sign = c.list ? "$" : "";
  std::vector<std::string> amounts;
  if (c.whole.on_demand) amounts.push_back(sign + money(*c.whole.on_demand) + " on demand");
  if (c.whole.spot) amounts.push_back(sign + money(*c.whole.spot) + " on spot");
  if (amounts.empty()) return lines + "  money: no price of these GPUs is known; --price says it\n";
  std::string text = fmt::format("{}", fmt::join(amounts, ", "));
  if (c.list) text += price_words(*c.list);
  return lines + wrapped(text, "  ", "  ");
}

/// Checkpoints, failures, and what is left of the time.
std::string upkeep_lines(const Cost& c, const Cluster& cluster) {
  const Upkeep& u = *c.upkeep;
  const CheckpointStorage& storage = *cluster.checkpoint_storage;
  const std::string saved =
      fmt::format("a checkpoint: {}, {} to save, {} to load ({:.3g} GB/s of each node{})",
                  format_bytes(u.saved.total().count()), format_seconds(u.save_seconds),
                  format_seconds(u.load_seconds), storage.write_bandwidth / kGiga,
                  storage.source == Source::assumed ? ", assumed" : "");
  const std::string& counted = cluster.failures->counted_on;
  const std::string rest =
      fmt::format("one every {} for a failure in {}{}: goodput {:.1f} %, {} days in all",
                  span_words(u.interval_seconds), span_words(u.failure_seconds),
                  counted.empty() ? "" : fmt::format(" (as {})", counted), 100 * u.goodput,
                  figure(*c.days / u.goodput));
  return wrapped(saved, "  ", "  ") + wrapped(rest, "  ", "  ");
}

Json upkeep_json(const Cost& c, const Cluster& cluster) {
  if (!c.upkeep) return nullptr;
  const Upkeep& u = *c.upkeep;
  const Money whole = c.whole * (1 / u.goodput);
  return {{"files", u.saved.files},
          {"bytes", u.saved.total().count()},
          {"weight_bytes", u.saved.weights.count()},
          {"state_bytes", u.saved.states.count()},
          {"written_by_node_bytes", u.saved.written_by_node.count()},
          {"read_by_node_bytes", u.saved.read_by_node.count()},
          {"storage", cluster.checkpoint_storage->name},
          {"storage_source", name_of(cluster.checkpoint_storage->source)},
          {"save_seconds", u.save_seconds},
          {"load_seconds", u.load_seconds},
          {"restart_seconds", u.restart_seconds},
          {"seconds_between_failures", u.failure_seconds},
          {"failures_counted_on", cluster.failures->counted_on},
          {"interval_seconds", u.interval_seconds},
          {"interval_seconds_young", u.young_seconds},
          {"goodput", u.goodput},
          {"days", *c.days / u.goodput},
          {"gpu_hours", *c.gpu_hours / u.goodput},
          {"money", maybe(whole.on_demand)},
          {"spot_money", maybe(whole.spot)}};
}

Json price_json(const ListPrice& p) {
  return {{"provider", p.provider}, {"machine", p.machine},
          {"region", p.region},     {"as_of", p.as_of},
          {"currency", "USD"},      {"on_demand", p.on_demand},
          {"spot", maybe(p.spot)},  {"gpus", p.gpus},
          {"of_gpus", p.of_gpus},   {"same_machine", p.same_machine},
          {"source", p.source}};
}

}  // namespace

std::string money(double amount) {
  return figure(amount);
}

std::string cost_lines(const Cost& c, const Cluster& cluster) {
  if (c.seconds_per_billion_tokens <= 0) return "";
  std::string text =
      fmt::format("{} GPU-hours for a billion tokens", figure(c.gpu_hours_per_billion_tokens));
  if (!c.list && c.per_hour.on_demand)
    text += fmt::format(", which cost {} at {} an hour{}; {} per step",
                        money(*c.per_billion_tokens.on_demand), money(*c.per_hour.on_demand),
                        cluster.world() > 1 ? " for all GPUs" : "", money(*c.per_step.on_demand));
  std::string lines = wrapped(text, "  ", "  ");
  if (c.kwh_per_billion_tokens)
    lines +=
        wrapped(fmt::format("at most {} kWh for them and {} kJ per step: the GPUs alone, at "
                            "their board power",
                            figure(*c.kwh_per_billion_tokens), figure(*c.joules_per_step / 1e3)),
                "  ", "  ");
  if (!c.tokens) return lines;
  return lines + whole_lines(c) + (c.upkeep ? upkeep_lines(c, cluster) : "");
}

Json cost_json(const Cost& c, const Cluster& cluster) {
  Json json;
  json["price_per_hour"] = maybe(c.per_hour.on_demand);
  json["spot_price_per_hour"] = maybe(c.per_hour.spot);
  json["list_price"] = c.list ? price_json(*c.list) : Json(nullptr);
  json["watts"] = maybe(c.watts);
  const bool timed = c.seconds_per_billion_tokens > 0;
  json["seconds_per_billion_tokens"] = timed ? Json(c.seconds_per_billion_tokens) : Json(nullptr);
  json["gpu_hours_per_billion_tokens"] =
      timed ? Json(c.gpu_hours_per_billion_tokens) : Json(nullptr);
  json["money_per_step"] = maybe(c.per_step.on_demand);
  json["money_per_billion_tokens"] = maybe(c.per_billion_tokens.on_demand);
  json["spot_money_per_billion_tokens"] = maybe(c.per_billion_tokens.spot);
  json["joules_per_step"] = maybe(c.joules_per_step);
  json["kwh_per_billion_tokens"] = maybe(c.kwh_per_billion_tokens);
  json["tokens"] = maybe(c.tokens);
  json["days"] = maybe(c.days);
  json["gpu_hours"] = maybe(c.gpu_hours);
  json["money"] = maybe(c.whole.on_demand);
  json["spot_money"] = maybe(c.whole.spot);
  json["kwh"] = maybe(c.kwh);
  json["checkpoint"] = upkeep_json(c, cluster);
  return json;
}

}  // namespace shardplan
