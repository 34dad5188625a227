#include "load/calibration.h"

#include <nlohmann/json.hpp>

#include "embedded/files.h"
#include "json/reader.h"

namespace shardplan {
namespace {

Calibration read(std::string_view path) {
  const Json json = parse_json(embedded_file(path), "data/" + std::string(path));
  ObjectReader o(json, "data/" + std::string(path));
  Calibration c;
  c.name = o.text("name").value_or("");
  c.arch = o.text("arch").value_or("");
  c.context_bytes = o.integer("context_bytes", 0).value_or(0);
  c.nccl_base_bytes = o.integer("nccl_base_bytes", 0).value_or(0);
  c.nccl_bytes_per_peer = o.integer("nccl_bytes_per_peer", 0).value_or(0);
  c.nccl_bytes_per_communicator = o.integer("nccl_bytes_per_communicator", 0).value_or(0);
  c.deepspeed_upper = o.number("deepspeed_upper", 1, 10).value_or(1);
  c.reserved_ratio = o.number("reserved_ratio", 1, 10).value_or(1);
  c.reserved_ratio_upper = o.number("reserved_ratio_upper", 1, 10).value_or(1);
  c.simulated_upper = o.number("simulated_upper", 1, 10).value_or(1);
  c.overhead_upper = o.number("overhead_upper", 1, 10).value_or(1);
  if (const Json* records = o.array("records"))
    c.records = records->get<std::vector<std::string>>();
  for (const auto* key : {"fitted_on", "how"}) o.find(key);
  o.finish();
  return c;
}

}  // namespace

Calibration load_calibration() { return read("calibration/h200-pytorch-2.11.json"); }

}  // namespace shardplan
