#include "load/measured_host.h"

#include <nlohmann/json.hpp>

namespace shardplan {

MeasuredHost read_measured_host(ObjectReader o) {
  constexpr double kLeastSeconds = 1e-9, kMostSeconds = 1, kLeastRate = 1e6, kMostRate = 1e14;
  o.choice("schema", {"shardplan.machine/1"});
  MeasuredHost host;
  host.cpu = o.text("cpu").value_or("");
  const auto call = o.number("python_call_seconds", kLeastSeconds, kMostSeconds);
  if (!call) o.missing("python_call_seconds", "seconds, as `shardplan probe` writes them");
  host.python_call_seconds = *call;
  host.python_call_seconds_least =
      o.number("python_call_seconds_least", kLeastSeconds, kMostSeconds);
  host.block_seconds = o.number("block_seconds", kLeastSeconds, kMostSeconds);
  host.kernel_launch_seconds = o.number("kernel_launch_seconds", 0, kMostSeconds);
  host.memory_bytes_per_second = o.number("memory_bytes_per_second", kLeastRate, kMostRate);
  host.to_gpu_bytes_per_second = o.number("to_gpu_bytes_per_second", kLeastRate, kMostRate);
  host.from_gpu_bytes_per_second = o.number("from_gpu_bytes_per_second", kLeastRate, kMostRate);
  for (const auto* key : {"cpus", "python", "gpu", "gpu_unknown", "how"}) o.find(key);
  o.finish();
  return host;
}

Json measured_host_json(const MeasuredHost& host) {
  Json json{{"cpu", host.cpu}, {"python_call_seconds", host.python_call_seconds}};
  const auto add = [&](const char* key, const std::optional<double>& value) {
    if (value) json[key] = *value;
  };
  add("python_call_seconds_least", host.python_call_seconds_least);
  add("block_seconds", host.block_seconds);
  add("kernel_launch_seconds", host.kernel_launch_seconds);
  add("memory_bytes_per_second", host.memory_bytes_per_second);
  add("to_gpu_bytes_per_second", host.to_gpu_bytes_per_second);
  add("from_gpu_bytes_per_second", host.from_gpu_bytes_per_second);
  return json;
}

}  // namespace shardplan
