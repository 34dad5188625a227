#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "load/calibration.h"
#include "load/measured_host.h"
#include "probe/run_probe.h"
#include "render/table.h"

namespace shardplan::cli {
namespace {

struct ProbeArguments {
  std::string python = "python3";
  Output output;
};

std::string micros(double seconds) {
  return fmt::format("{:.2f} µs", seconds * 1e6);
}

std::string rate(double bytes_per_second) {
  return fmt::format("{:.1f} GB/s", bytes_per_second / 1e9);
}

/// Another process took part of the time, or the machine is a slice of one that others use.
constexpr double kBusy = 1.3;

std::string busy_note(const MeasuredHost& host) {
  if (!host.python_call_seconds_least ||
      host.python_call_seconds < kBusy * *host.python_call_seconds_least)
    return {};
  return wrapped(
      fmt::format("The fastest calls took {}: something else was running here. Probe again when "
                  "the machine is idle, or while it does what it does beside training.",
                  micros(*host.python_call_seconds_least)),
      "", "");
}

std::string probe_text(const MeasuredHost& host, const std::string& gpu_unknown) {
  const std::string unknown = "unknown: " + gpu_unknown;
  TextTable table({Align::left, Align::left});
  if (!host.cpu.empty()) table.add({"processor", host.cpu});
  table.add({"a Python call", micros(host.python_call_seconds)});
  if (host.block_seconds)
    table.add({"a small block in PyTorch, both passes", micros(*host.block_seconds)});
  if (host.memory_bytes_per_second)
    table.add({"host memory, read and written", rate(*host.memory_bytes_per_second)});
  table.add({"a kernel's start",
             host.kernel_launch_seconds ? micros(*host.kernel_launch_seconds) : unknown});
  if (host.to_gpu_bytes_per_second && host.from_gpu_bytes_per_second)
    table.add({"pinned memory to the GPU, and back",
               fmt::format("{}, {}", rate(*host.to_gpu_bytes_per_second),
                           rate(*host.from_gpu_bytes_per_second))});
  if (const auto reference = load_calibration().host)
    table.add(
        {"host, the calibration's = 1.0", fmt::format("{:.2f}", host_factor(host, *reference))});
  return table.text("") + busy_note(host);
}

Exit run_command(const ProbeArguments& a) {
  const Json json = run_probe(a.python);
  const MeasuredHost host = read_measured_host({json, a.python});
  if (a.output.json() || !a.output.file.empty()) a.output.write_json(json, 1);
  if (!a.output.json()) Output().write_text(probe_text(host, json.value("gpu_unknown", "")));
  return Exit::done;
}

}  // namespace

void add_probe(CLI::App& app, Run& run) {
  auto a = std::make_shared<ProbeArguments>();
  CLI::App* command =
      app.add_subcommand("probe", "Measure what this machine's host takes: a few seconds");
  command->add_option("--python", a->python, "the Python that trains")->capture_default_str();
  add_output(*command, a->output);
  command->footer(
      "Example: shardplan probe -o probe.json && shardplan fit llama-3.2-3b 2xH100 --machine "
      "probe.json\n"
      "No GPU is needed for the host's part: what a GPU alone can say is then unknown.");
  command->callback([a, &run] { run = [a] { return run_command(*a); }; });
}

}  // namespace shardplan::cli
