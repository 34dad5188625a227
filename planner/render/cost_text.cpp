#include "render/cost_text.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

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

}  // namespace

std::string money(double amount) {
  return figure(amount);
}

std::string cost_lines(const Cost& c) {
  if (c.seconds_per_billion_tokens <= 0) return "";
  std::string text =
      fmt::format("{} GPU-hours for a billion tokens", figure(c.gpu_hours_per_billion_tokens));
  if (c.money_per_billion_tokens)
    text += fmt::format(", which cost {} at {} an hour for all GPUs; {} per step",
                        money(*c.money_per_billion_tokens), money(*c.price_per_hour),
                        money(*c.money_per_step));
  std::string lines = wrapped(text, "  ", "  ");
  if (c.kwh_per_billion_tokens)
    lines +=
        wrapped(fmt::format("at most {} kWh for them and {} kJ per step: the GPUs alone, at "
                            "their board power",
                            figure(*c.kwh_per_billion_tokens), figure(*c.joules_per_step / 1e3)),
                "  ", "  ");
  if (!c.tokens) return lines;
  std::string whole =
      fmt::format("{} tokens: {} days", format_parameters(static_cast<std::int64_t>(*c.tokens)),
                  figure(*c.days));
  if (c.money) whole += fmt::format(", {} in money", money(*c.money));
  if (c.kwh) whole += fmt::format(", at most {} kWh", figure(*c.kwh));
  return lines + wrapped(whole, "  ", "  ");
}

Json cost_json(const Cost& c) {
  Json json;
  json["price_per_hour"] = maybe(c.price_per_hour);
  json["watts"] = maybe(c.watts);
  const bool timed = c.seconds_per_billion_tokens > 0;
  json["seconds_per_billion_tokens"] = timed ? Json(c.seconds_per_billion_tokens) : Json(nullptr);
  json["gpu_hours_per_billion_tokens"] =
      timed ? Json(c.gpu_hours_per_billion_tokens) : Json(nullptr);
  json["money_per_step"] = maybe(c.money_per_step);
  json["money_per_billion_tokens"] = maybe(c.money_per_billion_tokens);
  json["joules_per_step"] = maybe(c.joules_per_step);
  json["kwh_per_billion_tokens"] = maybe(c.kwh_per_billion_tokens);
  json["tokens"] = maybe(c.tokens);
  json["days"] = maybe(c.days);
  json["money"] = maybe(c.money);
  json["kwh"] = maybe(c.kwh);
  return json;
}

}  // namespace shardplan
