#include "render/cost_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/format.h"
#include "render/optional_json.h"
#include "render/table.h"

namespace shardplan {
namespace {

/// Whole from 100 on, else three significant figures.
std::string figure(double value) {
  if (std::abs(value) < 100) return fmt::format("{:.3g}", value);
  return format_count(static_cast<std::int64_t>(std::llround(value)));
}

/// " at the share of 4 of its 8 GPUs", where the cluster's nodes are not that machine.
std::string share_words(const ListPrice& p) {
  if (p.same_machine) return "";
  const std::string like = ", the cheapest machine with such GPUs";
  return p.of_gpus == p.gpus
             ? like
             : fmt::format("{}, at the share of {} of its {}", like, p.of_gpus, p.gpus);
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
  if (c.list)
    text += fmt::format(": list price of {} {} ({}) on {}{}; --price says yours", c.list->provider,
                        c.list->machine, c.list->region, c.list->as_of, share_words(*c.list));
  return lines + wrapped(text, "  ", "  ");
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

std::string cost_lines(const Cost& c) {
  if (c.seconds_per_billion_tokens <= 0) return "";
  std::string text =
      fmt::format("{} GPU-hours for a billion tokens", figure(c.gpu_hours_per_billion_tokens));
  if (!c.list && c.per_hour.on_demand)
    text += fmt::format(", which cost {} at {} an hour for all GPUs; {} per step",
                        money(*c.per_billion_tokens.on_demand), money(*c.per_hour.on_demand),
                        money(*c.per_step.on_demand));
  std::string lines = wrapped(text, "  ", "  ");
  if (c.kwh_per_billion_tokens)
    lines +=
        wrapped(fmt::format("at most {} kWh for them and {} kJ per step: the GPUs alone, at "
                            "their board power",
                            figure(*c.kwh_per_billion_tokens), figure(*c.joules_per_step / 1e3)),
                "  ", "  ");
  return c.tokens ? lines + whole_lines(c) : lines;
}

Json cost_json(const Cost& c) {
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
  return json;
}

}  // namespace shardplan
