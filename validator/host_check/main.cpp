// shardplan-host-check: how fast are the host's cores at what offloaded states ask of them?
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "host_check/speed.h"
#include "memory/arena.h"

namespace shardplan::validator {
namespace {

/// The faster of copy and triad: what the memory gives.
double memory_rate(const HostSpeed& speed) {
  return std::max(speed.rates[0].bytes_per_second(), speed.rates[1].bytes_per_second());
}

void print_text(const HostSpeed& speed) {
  fmt::print("{}\n\n  {:<22}{:>10}{:>16}{:>12}\n", speed.cores, "", "GB/s", "elements/s",
             "of memory");
  for (const HostRate& r : speed.rates)
    fmt::print("  {:<22}{:>10.1f}{:>16.3g}{:>10.0f} %\n", r.what, r.bytes_per_second() / 1e9,
               r.elements / r.seconds, 100 * r.bytes_per_second() / memory_rate(speed));
}

void print_json(const HostSpeed& speed) {
  nlohmann::json rates = nlohmann::json::array();
  for (const HostRate& r : speed.rates)
    rates.push_back({{"what", r.what},
                     {"bytes_per_second", r.bytes_per_second()},
                     {"elements_per_second", r.elements / r.seconds},
                     {"seconds", r.seconds}});
  fmt::print("{}\n", nlohmann::json{{"cores", speed.cores}, {"rates", rates}}.dump(1));
}

int run(int argc, char** argv) {
  CLI::App app("Times copies and optimizer updates on the cores of this host.");
  HostSpeedOptions options;
  bool json = false;
  app.add_option("--elements", options.elements, "elements of an array; default: 2^28")
      ->check(CLI::Range(std::int64_t{1} << 20, std::int64_t{1} << 36));
  app.add_option("--passes", options.passes, "timed passes; default: 9")
      ->check(CLI::Range(1, 1000));
  app.add_option_function<std::string>(
         "--format", [&json](const std::string& f) { json = f == "json"; }, "text or json")
      ->check(CLI::IsMember({"text", "json"}));
  app.footer("Example: shardplan-host-check --elements 1000000000");
  CLI11_PARSE(app, argc, argv);
  const HostSpeed speed = measure_host_speed(options);
  json ? print_json(speed) : print_text(speed);
  return 0;
}

}  // namespace
}  // namespace shardplan::validator

int main(int argc, char** argv) {
  constexpr int kDeviceFailure = 5;
  try {
    return shardplan::validator::run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "shardplan-host-check: {}\n", error.what());
    return kDeviceFailure;
  }
}
