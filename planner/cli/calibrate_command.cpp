#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "calibrate/calibrate.h"
#include "calibrate/margins.h"
#include "cli/commands.h"
#include "frameworks/registry.h"
#include "hardware/gpu_names.h"
#include "load/calibration.h"
#include "load/hardware.h"
#include "load/measured_host.h"
#include "render/table.h"
#include "save/estimate.h"

namespace shardplan::cli {
namespace {

struct CalibrateArguments {
  std::vector<std::string> records;
  std::vector<std::string> steps;
  std::vector<std::string> margins;
  std::string from;
  std::string name;
  bool same_records = false;
  std::vector<std::string> renew;  ///< none, or a framework and a regime of the allocator
  Output output;
};

/// The one GPU that all records were measured on.
const CatalogGpu& measured_gpu(const std::vector<RateRecord>& records,
                               const HardwareCatalog& hardware) {
  for (const RateRecord& r : records)
    if (r.gpu != records.front().gpu)
      throw InputError({.file = r.file,
                        .key = "environment.gpu",
                        .message = fmt::format("measured on {}, {} on {}", r.gpu,
                                               records.front().file, records.front().gpu),
                        .expected = "records of one kind of GPU"});
  const CatalogGpu* gpu = choose_gpu(records.front().gpu, hardware).gpu;
  if (gpu == nullptr)
    throw InputError(
        {.file = records.front().file,
         .key = "environment.gpu",
         .message = fmt::format("the GPU '{}' is not in the catalogue", records.front().gpu),
         .expected = "a GPU that `shardplan catalog gpus` lists"});
  return *gpu;
}

std::string quality_text(const CalibrationFit& fit) {
  TextTable table({Align::left, Align::right, Align::right});
  table.add({"fitted to", "measurements", "mean error"});
  for (const FitQuality& q : fit.quality)
    table.add({q.group, std::to_string(q.count), fmt::format("{:.1f} %", 100 * q.mean_error)});
  return table.text("");
}

Json margin_json(const Margin& m) {
  return Json{
      {"framework", m.framework}, {"regime", kRegimeNames[static_cast<std::size_t>(m.regime)]},
      {"least", m.least},         {"reserved", m.reserved},
      {"allocated", m.allocated}, {"runs", m.runs}};
}

std::string margins_text(const std::vector<Margin>& margins) {
  TextTable table(
      {Align::left, Align::left, Align::right, Align::right, Align::right, Align::right});
  table.add({"margin for", "regime", "runs", "least", "reserved", "allocated"});
  for (const Margin& m : margins)
    table.add({m.framework.empty() ? "all" : m.framework,
               std::string(kRegimeNames[static_cast<std::size_t>(m.regime)]),
               std::to_string(m.runs), fmt::format("{:.3f}", m.least),
               fmt::format("{:.3f}", m.reserved), fmt::format("{:.3f}", m.allocated)});
  return table.text("");
}

/// Throws InputError that lists the names there are.
template <typename Names>
std::size_t place_in(const Names& names, const std::string& name, std::string_view what) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end())
    throw InputError({.key = "--renew",
                      .message = fmt::format("'{}' is no {}", name, what),
                      .expected = fmt::format("one of {}", fmt::join(names, ", "))});
  return static_cast<std::size_t>(found - names.begin());
}

/// Whose upper margin is fitted anew.
struct Renewed {
  std::string_view framework;
  AllocatorRegime regime = AllocatorRegime::steady;
};

std::optional<Renewed> renewed_of(const CalibrateArguments& a) {
  if (a.renew.empty()) return std::nullopt;
  std::vector<std::string_view> names;
  for (const FrameworkTraits* traits : all_frameworks()) names.push_back(traits->name);
  const std::size_t regime = place_in(kRegimeNames, a.renew.back(), "regime of the allocator");
  return Renewed{names[place_in(names, a.renew.front(), "framework")],
                 static_cast<AllocatorRegime>(regime)};
}

/// The records that margins are fitted to; `json` names those that they were fitted to before.
std::vector<const Comparison*> margin_runs(const CalibrateArguments& a,
                                           const std::optional<Renewed>& renewed,
                                           const std::vector<Comparison>& comparisons,
                                           const Json& json) {
  if (!a.same_records && !renewed) return fit_half(comparisons);
  const auto names = json["margin_records"].get<std::vector<std::string>>();
  return renewed ? those_renewed(comparisons, names, renewed->framework, renewed->regime)
                 : those_named(comparisons, names);
}

Calibration begun_from(const CalibrateArguments& a) {
  return a.from.empty() ? load_calibration() : load_calibration(a.from);
}

/// Upper bounds are renewed alone: lower ones stay what they were.
void keep_least(std::vector<Margin>& margins, const std::vector<Margin>& before) {
  for (Margin& m : margins) m.least = margin_of(before, m.framework, m.regime).least;
}

/// How far runs pass their estimates, in place of what `json` says of it.
Exit run_margins(const CalibrateArguments& a, const HardwareCatalog& hardware, Json json) {
  const std::optional<Renewed> renewed = renewed_of(a);
  const RecordList runs = load_records(a.margins, hardware);
  if (!runs.bad.empty()) throw InputError(runs.bad.front());
  const Accuracy accuracy = compare_with_records(runs, AccuracyGroup::framework);
  if (!accuracy.bad.empty()) throw InputError(accuracy.bad.front());
  const std::vector<const Comparison*> half = margin_runs(a, renewed, accuracy.comparisons, json);
  std::vector<Margin> margins = fit_margins(half);
  if (renewed) keep_least(margins, begun_from(a).margins);
  json["margins"] = Json::array();
  for (const Margin& m : margins) json["margins"].push_back(margin_json(m));
  json["margin_records"] = Json::array();
  for (const Comparison* c : half) json["margin_records"].push_back(c->name);
  json["step_errors"] = Json::array();
  for (const StepError& e : step_errors(accuracy.comparisons))
    json["step_errors"].push_back(step_error_json(e));
  json["confirmed"] = Json::array();
  for (const Confirmed& c : confirmed_features(accuracy.comparisons))
    json["confirmed"].push_back(Json{{"framework", c.framework}, {"features", c.features}});
  if (a.output.json() || !a.output.file.empty()) a.output.write_json(json, 1);
  if (!a.output.json()) Output().write_text(margins_text(margins));
  return Exit::done;
}

/// The host that the times are of: that of the records that say it, and never the one that the
/// calibration to start from was fitted on, nor what is usual beside it.
void set_machine(Json& json, const std::vector<RateRecord>& records) {
  json.erase("machine");
  json.erase("usual_host");
  for (const RateRecord& r : records)
    if (r.host && !r.hosts.empty()) json["machine"] = measured_host_json(*r.host);
}

Exit run_calibrate(const CalibrateArguments& a) {
  const HardwareCatalog hardware = load_hardware_catalog();
  if (!a.margins.empty())
    return run_margins(a, hardware,
                       a.from.empty() ? built_in_calibration() : read_json_file(a.from));
  if (a.records.empty())
    throw InputError({.key = "RECORD",
                      .message = "no records",
                      .expected = "records of rates, or --margins with records of runs"});
  std::vector<RateRecord> records;
  for (const std::string& path : a.records)
    records.push_back(load_rate_record(path, {&hardware, ""}));
  const RecordList steps = load_records(a.steps, hardware);
  if (!steps.bad.empty()) throw InputError(steps.bad.front());
  const Gpu& gpu = measured_gpu(records, hardware).gpu;
  Json json = a.from.empty() ? built_in_calibration() : read_json_file(a.from);
  TimeRates start = begun_from(a).time;
  start.host.usual = {};
  const CalibrationFit fit = calibrate(records, steps.records, gpu, start);

  if (!a.name.empty()) json["name"] = a.name;
  json["arch"] = gpu.arch;
  json["runtime"] = gpu.abilities.runtime;
  json["collectives"] = gpu.abilities.collectives;
  json["time"] = time_json(fit.rates);
  set_machine(json, records);
  json["time_records"] = Json::array();
  for (const auto* list : {&a.records, &a.steps})
    for (const std::string& path : *list)
      json["time_records"].push_back(std::filesystem::path(path).filename().string());
  json["time_errors"] = Json::object();
  for (const FitQuality& q : fit.quality)
    json["time_errors"][q.group] = {{"measurements", q.count}, {"mean_error", q.mean_error}};
  if (a.output.json() || !a.output.file.empty()) a.output.write_json(json, 1);
  if (!a.output.json()) Output().write_text(quality_text(fit));
  return Exit::done;
}

}  // namespace

void add_calibrate(CLI::App& app, Run& run) {
  auto a = std::make_shared<CalibrateArguments>();
  CLI::App* command =
      app.add_subcommand("calibrate", "Fit the time model's rates to measured ones");
  command->add_option("RECORD", a->records, "records of rates and step times, all of one GPU");
  command->add_option("--steps", a->steps,
                      "records of steps on several GPUs, for what DDP and FSDP2 add");
  command
      ->add_option(
          "--margins", a->margins,
          "records of runs: how far they pass their estimates, for the upper bounds of memory")
      ->excludes("RECORD");
  command
      ->add_flag("--same-records", a->same_records,
                 "fit margins to the records that they were fitted to: later ones go on judging")
      ->needs("--margins");
  command
      ->add_option("--renew", a->renew,
                   "as --same-records, but halve the records of this framework in this regime of "
                   "the allocator anew, by name, for the upper bounds")
      ->type_name("FRAMEWORK REGIME")
      ->expected(2)
      ->needs("--margins");
  command->add_option("--from", a->from, "calibration to start from; without, the built-in one");
  command->add_option("--name", a->name, "the new calibration's name");
  add_output(*command, a->output);
  command->footer(
      "Example: shardplan calibrate data/measurements/rates/*.json -o my-machine.json\n"
      "What can be measured and how: tests/accuracy/measure/README.md.");
  command->callback([a, &run] { run = [a] { return run_calibrate(*a); }; });
}

}  // namespace shardplan::cli
