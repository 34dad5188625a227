#include "render/catalog_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "base/units.h"
#include "hardware/abilities.h"
#include "load/catalog.h"
#include "model/architectures/registry.h"
#include "render/optional_json.h"
#include "render/table.h"

namespace shardplan {
namespace {

constexpr std::string_view kCatalogLegend =
    "  ? no source confirms the figure; - the part has no such thing, or it is not known\n";

/// Whether `field` or a part of it ("tflops_dense.bf16" of "tflops_dense") is unverified.
bool doubtful(const std::vector<std::string>& unverified, std::string_view field) {
  return std::any_of(unverified.begin(), unverified.end(), [&](const std::string& name) {
    return name == field || field.substr(0, name.size() + 1) == name + ".";
  });
}

std::string marked(std::string text, bool is_doubtful) {
  return is_doubtful ? text + "?" : text;
}

/// `value` in units of `unit`, or a dash.
std::string rate(const std::optional<double>& value, double unit, bool is_doubtful) {
  if (!value) return "-";
  return marked(fmt::format("{:.4g}", *value / unit), is_doubtful);
}

Json peak_json(const PeakFlops& peak) {
  Json out = Json::object();
  peak.for_each([&](std::string_view name, const std::optional<double>& rate) {
    out[std::string(name)] = maybe(rate);
  });
  return out;
}

/// Each ability, and under "assumed" those that no source states.
Json abilities_json(const Gpu& gpu) {
  Json out = Json::object();
  for (const AbilityField& field : kAbilityFields)
    std::visit([&](auto member) { out[std::string(field.key)] = gpu.abilities.*member; },
               field.member);
  out["assumed"] = gpu.assumed_abilities;
  return out;
}

}  // namespace

std::string models_text() {
  TextTable table({Align::left, Align::right, Align::left});
  table.add({"name", "parameters", "also found as"});
  for (const CatalogModel& m : catalog_models())
    table.add({m.name, marked(format_count(m.parameters), m.unverified),
               m.aliases.empty() ? "" : m.aliases.front()});
  return table.text("") +
         "\n  A path to a config.json, or a size such as 7B, is as good as a name.\n"
         "  ?: put together from other copies; the published config.json was not seen.\n";
}

Json models_json() {
  Json list = Json::array();
  for (const CatalogModel& m : catalog_models())
    list.push_back(Json{{"name", m.name},
                        {"family", m.family},
                        {"aliases", m.aliases},
                        {"parameters", m.parameters},
                        {"source", m.source},
                        {"unverified", m.unverified},
                        {"config", m.config}});
  return list;
}

std::string gpus_text(const HardwareCatalog& catalog) {
  TextTable table({Align::left, Align::right, Align::right, Align::right, Align::right,
                   Align::right, Align::right, Align::right});
  table.add({"name", "memory", "usable", "memory", "NVLink", "PCIe", "bf16", "fp16"});
  table.add({"", "", "", "GB/s", "GB/s", "GB/s", "TFLOP/s", "TFLOP/s"});
  for (const CatalogGpu& row : catalog.gpus) {
    const Gpu& g = row.gpu;
    const auto bad = [&](std::string_view field) { return doubtful(g.unverified, field); };
    table.add({g.name, marked(format_bytes(g.capacity.count()), bad("memory_driver_mib")),
               marked(format_bytes(g.usable.count()), g.usable_source == Source::assumed),
               rate(g.memory_bandwidth, kGiga, bad("memory_bandwidth_gbs")),
               rate(g.nvlink_bandwidth, kGiga, bad("nvlink")),
               rate(g.pcie_bandwidth, kGiga, bad("pcie")),
               rate(g.peak[PeakRate::bf16], kTera, bad("tflops_dense.bf16")),
               rate(g.peak[PeakRate::fp16], kTera, bad("tflops_dense.fp16"))});
  }
  return table.text("") +
         "\n  Rates are dense, bandwidths one direction. Usable is what a process "
         "can allocate.\n" +
         std::string(kCatalogLegend);
}

Json gpus_json(const HardwareCatalog& catalog) {
  Json list = Json::array();
  for (const CatalogGpu& row : catalog.gpus) {
    const Gpu& g = row.gpu;
    list.push_back(Json{{"name", g.name},
                        {"aliases", row.aliases},
                        {"vendor", g.vendor},
                        {"arch", g.arch},
                        {"compute_capability", g.compute_capability},
                        {"memory_bytes", g.capacity.count()},
                        {"usable_bytes", g.usable.count()},
                        {"usable_source", name_of(g.usable_source)},
                        {"memory_bandwidth", maybe(g.memory_bandwidth)},
                        {"peak_flops", peak_json(g.peak)},
                        {"abilities", abilities_json(g)},
                        {"nvlink_bandwidth", maybe(g.nvlink_bandwidth)},
                        {"pcie_bandwidth", maybe(g.pcie_bandwidth)},
                        {"tdp_watts", maybe(g.tdp_watts)},
                        {"unverified", g.unverified},
                        {"sources", row.sources},
                        {"note", g.note}});
  }
  return list;
}

std::string clusters_text(const HardwareCatalog& catalog) {
  TextTable table(
      {Align::left, Align::left, Align::left, Align::right, Align::right, Align::right});
  table.add({"name", "provider", "GPUs", "host memory", "NVMe", "network Gb/s"});
  for (const Instance& row : catalog.instances) {
    const auto bad = [&](std::string_view field) { return doubtful(row.unverified, field); };
    const auto bytes = [&](const std::optional<Bytes>& value, std::string_view field) {
      if (!value || value->count() == 0) return std::string("-");
      return marked(format_bytes(value->count()), bad(field));
    };
    table.add({row.name, row.provider, fmt::format("{} × {}", row.gpus, row.gpu),
               bytes(row.host_memory, "host_memory_gib"), bytes(row.nvme, "nvme_gb"),
               rate(row.network, kGiga / 8, bad("network_gbps"))});
  }
  return table.text("") + "\n  Any count of any GPU works too: 4xA100-40GB, 2x8xH100, 4x40GB.\n" +
         std::string(kCatalogLegend);
}

Json clusters_json(const HardwareCatalog& catalog) {
  Json list = Json::array();
  for (const Instance& row : catalog.instances)
    list.push_back(Json{{"name", row.name},
                        {"provider", row.provider},
                        {"aliases", row.aliases},
                        {"gpu", row.gpu},
                        {"gpus", row.gpus},
                        {"host_memory_bytes", maybe(row.host_memory)},
                        {"nvme_bytes", maybe(row.nvme)},
                        {"network_bandwidth", maybe(row.network)},
                        {"unverified", row.unverified},
                        {"source", row.source},
                        {"note", row.note}});
  return list;
}

}  // namespace shardplan
