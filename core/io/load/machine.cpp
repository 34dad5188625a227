#include "load/machine.h"

#include <nlohmann/json.hpp>

#include "json/reader.h"
#include "load/measured_host.h"

namespace shardplan {
namespace {

constexpr double kLeastFactor = 0.01, kMostFactor = 100;

Anchor read_anchor(ObjectReader o) {
  constexpr double kMostSeconds = 1e9;
  Anchor anchor;
  const auto text = [&](const char* key) { return o.text(key).value_or(""); };
  anchor.run = text("run");
  anchor.gpu = text("gpu");
  anchor.calibration = text("calibration");
  anchor.measured_seconds = o.number("measured_seconds", 0, kMostSeconds).value_or(0);
  anchor.predicted_seconds = o.number("predicted_seconds", 0, kMostSeconds).value_or(0);
  anchor.memory_over = o.number("memory_over", 1, kMostFactor).value_or(1);
  auto factors = o.object("factors");
  if (!factors) o.missing("factors", "an object, as `shardplan anchor` writes it");
  for (std::size_t p = 0; p < kStepParts; ++p)
    anchor.factors[p] = factors->number(kStepPartNames[p], kLeastFactor, kMostFactor).value_or(1);
  factors->finish();
  o.finish();
  return anchor;
}

Json anchor_json(const Anchor& anchor) {
  Json json{{"run", anchor.run},
            {"gpu", anchor.gpu},
            {"calibration", anchor.calibration},
            {"measured_seconds", anchor.measured_seconds},
            {"predicted_seconds", anchor.predicted_seconds},
            {"factors", Json::object()},
            {"memory_over", anchor.memory_over}};
  for (std::size_t p = 0; p < kStepParts; ++p)
    json["factors"][std::string(kStepPartNames[p])] = anchor.factors[p];
  return json;
}

}  // namespace

Machine load_machine(const std::string& path) {
  Json json = read_json_file(path);
  Machine machine;
  if (json.is_object() && json.contains("anchor")) {
    ObjectReader o(json, path);
    if (const auto anchor = o.object("anchor")) machine.anchor = read_anchor(*anchor);
    json.erase("anchor");
  }
  // Without an anchor there must be a host, and the error names what it has.
  if (!machine.anchor || json.contains("python_call_seconds")) {
    machine.host = read_measured_host({json, path});
  } else {
    ObjectReader rest(json, path);
    rest.choice("schema", {"shardplan.machine/1"});
    rest.finish();
  }
  return machine;
}

Json machine_json(const Machine& machine) {
  Json json{{"schema", "shardplan.machine/1"}};
  if (machine.host) overlay(json, measured_host_json(*machine.host));
  if (machine.anchor) json["anchor"] = anchor_json(*machine.anchor);
  return json;
}

}  // namespace shardplan
