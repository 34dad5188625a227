#include "load/calibration.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "embedded/json.h"
#include "json/reader.h"
#include "load/measured_host.h"
#include "timing/rate_fields.h"

namespace shardplan {
namespace {

constexpr std::string_view kBuiltIn = "calibration/h200-pytorch-2.11.json";

void read_time(ObjectReader& o, TimeRates& rates) {
  auto time = o.object("time");
  if (!time) return;
  for_each_rate(rates, [&](const std::string& name, double& value) {
    value = time->number(name, 0).value_or(value);
  });
  time->finish();
}

NcclOverhead read_nccl(ObjectReader& o) {
  NcclOverhead nccl;
  auto in = o.object("nccl");
  if (!in) return nccl;
  const auto read = [&](const char* key, std::int64_t least, std::int64_t& value) {
    value = in->integer(key, least).value_or(value);
  };
  read("modules_bytes", 0, nccl.modules_bytes);
  read("collective_bytes", 0, nccl.collective_bytes);
  read("point_to_point_bytes", 0, nccl.point_to_point_bytes);
  read("channels", 1, nccl.channels);
  read("channels_alone", 1, nccl.channels_alone);
  read("channels_to_peer", 1, nccl.channels_to_peer);
  in->finish();
  return nccl;
}

HostGrowth read_host_growth(ObjectReader& o) {
  HostGrowth growth;
  auto in = o.object("host_growth");
  if (!in) return growth;
  growth.products_bytes = in->integer("products_bytes", 0).value_or(0);
  growth.attention_bytes = in->integer("attention_bytes", 0).value_or(0);
  growth.rank_bytes = in->integer("rank_bytes", 0).value_or(0);
  growth.direct_bytes = in->integer("direct_bytes", 0).value_or(0);
  in->finish();
  return growth;
}

ProcessOverhead read_overhead(ObjectReader& o) {
  ProcessOverhead overhead;
  overhead.context_bytes = o.integer("context_bytes", 0).value_or(0);
  overhead.attention_bytes = o.integer("attention_bytes", 0).value_or(0);
  overhead.foreign_context_bytes = o.integer("foreign_context_bytes", 0).value_or(0);
  overhead.nccl = read_nccl(o);
  overhead.upper = o.number("overhead_upper", 1, 10).value_or(1);
  overhead.host = read_host_growth(o);
  return overhead;
}

AllocatorRegime regime_named(const std::string& name) {
  const auto at = std::find(kRegimeNames.begin(), kRegimeNames.end(), name);
  return static_cast<AllocatorRegime>(at - kRegimeNames.begin());
}

Margin read_margin(ObjectReader o) {
  Margin m;
  const std::vector<std::string> regimes(kRegimeNames.begin(), kRegimeNames.end());
  const auto regime = o.choice("regime", regimes);
  if (!regime) o.missing("regime", fmt::format("one of {}", fmt::join(regimes, ", ")));
  m.regime = regime_named(*regime);
  m.framework = o.text("framework").value_or("");
  m.least = o.number("least", 0, 1).value_or(1);
  m.reserved = o.number("reserved", 1, 10).value_or(1);
  m.allocated = o.number("allocated", 1, 10).value_or(1);
  m.runs = o.integer("runs", 0).value_or(0);
  o.finish();
  return m;
}

std::vector<Margin> read_margins(ObjectReader& o, const std::string& file) {
  std::vector<Margin> margins;
  const Json* list = o.array("margins");
  if (list == nullptr) o.missing("margins", "a list with a margin for each regime");
  for (std::size_t i = 0; i < list->size(); ++i)
    margins.push_back(read_margin({(*list)[i], file, fmt::format("margins[{}]", i)}));
  for (const std::string_view regime : kRegimeNames) {
    const bool there = std::any_of(margins.begin(), margins.end(), [&](const Margin& m) {
      return m.framework.empty() && m.regime == regime_named(std::string(regime));
    });
    if (!there)
      o.fail("margins", fmt::format("no margin for '{}' that holds for all frameworks", regime),
             R"(one for each regime, with "framework": "")");
  }
  return margins;
}

std::vector<StepError> read_step_errors(ObjectReader& o, const std::string& file) {
  std::vector<StepError> errors;
  const Json* list = o.array("step_errors");
  if (list == nullptr) return errors;
  for (std::size_t i = 0; i < list->size(); ++i) {
    ObjectReader in((*list)[i], file, fmt::format("step_errors[{}]", i));
    errors.push_back({.kind = in.text("kind").value_or(""),
                      .runs = in.integer("runs", 0).value_or(0),
                      .mean = in.number("mean", 0).value_or(0),
                      .largest = in.number("largest").value_or(0)});
    in.finish();
  }
  return errors;
}

std::vector<Confirmed> read_confirmed(ObjectReader& o, const std::string& file) {
  std::vector<Confirmed> confirmed;
  const Json* list = o.array("confirmed");
  if (list == nullptr) return confirmed;
  for (std::size_t i = 0; i < list->size(); ++i) {
    ObjectReader in((*list)[i], file, fmt::format("confirmed[{}]", i));
    Confirmed one{.framework = in.text("framework").value_or(""), .features = {}};
    if (const Json* features = in.array("features"))
      one.features = features->get<std::vector<std::string>>();
    in.finish();
    confirmed.push_back(std::move(one));
  }
  return confirmed;
}

ScarceMargin read_scarce(ObjectReader& o) {
  ScarceMargin scarce;
  auto in = o.object("scarce");
  if (!in) return scarce;
  scarce.least = in->number("least", 0, 1).value_or(1);
  scarce.most = in->number("most", 1, 10).value_or(1);
  scarce.runs = in->integer("runs", 0).value_or(0);
  for (const auto* key : {"how", "records"}) in->find(key);
  in->finish();
  return scarce;
}

UsualHost read_usual_host(ObjectReader& o, const std::string& arch) {
  UsualHost usual{.arch = arch, .pace = o.number("pace", 0.1, 10).value_or(1), .gpus = {}};
  o.find("how");
  if (const Json* gpus = o.array("gpus"))
    for (const Json& beside : *gpus) {
      ObjectReader one(beside, o.file(), o.path_of("gpus"));
      usual.gpus.push_back(
          {one.text("gpu").value_or(""), one.number("pace", 0.1, 10).value_or(usual.pace)});
      one.finish();
    }
  o.finish();
  return usual;
}

Calibration read(const Json& json, const std::string& file) {
  ObjectReader o(json, file);
  Calibration c;
  c.name = o.text("name").value_or("");
  c.arch = o.text("arch").value_or("");
  c.runtime = o.text("runtime").value_or("CUDA");
  c.collectives = o.text("collectives").value_or("NCCL");
  c.pytorch = c.native = read_overhead(o);
  if (auto native = o.object("native")) {
    c.native = read_overhead(*native);
    for (const auto* key : {"how", "records"}) native->find(key);
    native->finish();
  }
  c.reserved_ratio = o.number("reserved_ratio", 1, 10).value_or(1);
  c.reserved_ratio_upper = o.number("reserved_ratio_upper", 1, 10).value_or(1);
  if (const Json* records = o.array("records"))
    c.records = records->get<std::vector<std::string>>();
  c.margins = read_margins(o, file);
  c.scarce = read_scarce(o);
  c.step_errors = read_step_errors(o, file);
  c.confirmed = read_confirmed(o, file);
  if (const Json* records = o.array("margin_records"))
    c.margin_records = records->get<std::vector<std::string>>();
  read_time(o, c.time);
  if (auto usual = o.object("usual_host")) {
    c.time.host.usual = read_usual_host(*usual, c.arch);
  }
  if (auto host = o.object("machine")) c.host = read_measured_host(*host);
  for (const auto* key : {"fitted_on", "how", "nccl_records", "time_records", "time_errors"})
    o.find(key);
  o.finish();
  return c;
}

}  // namespace

Calibration load_calibration() {
  return read(built_in_calibration(), "data/" + std::string(kBuiltIn));
}

Calibration load_calibration(const std::string& path) {
  return read(read_json_file(path), path);
}

Json built_in_calibration() {
  return embedded_json(kBuiltIn);
}

Json time_json(const TimeRates& rates) {
  Json json = Json::object();
  for_each_rate(rates, [&](const std::string& name, const double& value) { json[name] = value; });
  return json;
}

}  // namespace shardplan
