#include "load/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "base/nearest.h"
#include "hardware/cluster_text.h"
#include "hardware/interconnect.h"
#include "hardware/prices.h"
#include "hardware/reliability.h"
#include "hardware/resolve.h"
#include "json/given_texts.h"
#include "json/reader.h"
#include "load/abilities.h"

namespace shardplan {
namespace {

constexpr double kLargestRate = 1e18;  // bytes/s or FLOP/s: a thousand times today's chips

/// Runs `resolve`, and gives an InputError of core the place it comes from.
template <typename Resolve>
auto at(const std::string& file, const std::string& path, Resolve resolve) {
  try {
    return resolve();
  } catch (const InputError& error) {
    Diagnostic diagnostic = error.diagnostic();
    diagnostic.file = file;
    diagnostic.key = path;
    throw InputError(std::move(diagnostic));
  }
}

std::optional<double> rate(ObjectReader& in, std::string_view key) {
  const auto value = in.number(key, 0, kLargestRate);
  if (value && *value == 0)
    in.fail(key, "found 0", "a positive number; leave the key out when it is not known");
  return value;
}

PeakFlops read_peak(ObjectReader& in) {
  auto peak = in.object("peak_flops");
  if (!peak) return {};
  PeakFlops out;
  out.for_each(
      [&](std::string_view name, std::optional<double>& flops) { flops = rate(*peak, name); });
  peak->finish();
  return out;
}

Gpu read_gpu_object(ObjectReader& in, const HardwareCatalog& catalog,
                    std::vector<std::string>& notes) {
  Gpu gpu;
  gpu.name = in.text("name").value_or("GPU");
  gpu.vendor = in.text("vendor").value_or("");
  gpu.arch = in.text("arch").value_or("");
  gpu.compute_capability = in.text("compute_capability").value_or("");
  const auto memory = in.integer("memory_bytes", 1);
  const auto usable = in.integer("usable_bytes", 1);
  if (!memory && !usable) in.missing("memory_bytes", "the bytes of a GPU's memory");
  gpu.capacity = Bytes(memory.value_or(usable.value_or(0)));
  if (usable) {
    if (*usable > gpu.capacity.count())
      in.fail("usable_bytes", fmt::format("found {}", *usable),
              fmt::format("at most memory_bytes, {}", gpu.capacity.count()));
    gpu.usable = Bytes(*usable);
  } else {
    const double ratio = std::min(1.0, typical_usable_ratio(catalog));
    gpu.usable = Bytes(
        static_cast<std::int64_t>(std::floor(static_cast<double>(gpu.capacity.count()) * ratio)));
    gpu.usable_source = Source::assumed;
    notes.push_back(
        fmt::format("{:.1f} % of the memory of {} are assumed to be usable, as on most GPUs",
                    100 * ratio, gpu.name));
  }
  gpu.multiprocessors = in.integer("multiprocessors", 1);
  gpu.l2_cache_bytes = in.integer("l2_cache_bytes", 1);
  gpu.memory_bandwidth = rate(in, "memory_bandwidth");
  gpu.peak = read_peak(in);
  gpu.nvlink_bandwidth = rate(in, "nvlink_bandwidth");
  gpu.pcie_bandwidth = rate(in, "pcie_bandwidth");
  gpu.tdp_watts = rate(in, "tdp_watts");
  give_abilities(gpu, read_abilities(in), catalog);
  if (std::string note = abilities_note(gpu); !note.empty()) notes.push_back(std::move(note));
  in.finish();
  return gpu;
}

Gpu read_gpu(ObjectReader& in, const HardwareCatalog& catalog, std::vector<std::string>& notes) {
  const Json* value = in.find("gpu");
  if (value == nullptr)
    in.missing("gpu", "a GPU such as A100-40GB, or an object with memory_bytes");
  const std::string path = in.path_of("gpu");
  if (value->is_string()) {
    ResolvedGpu resolved = at(in.file(), path, [&] {
      return resolve_gpu(value->get_ref<const std::string&>(), catalog);
    });
    notes = std::move(resolved.notes);
    return std::move(resolved.gpu);
  }
  if (!value->is_object())
    in.fail("gpu", say("found {}", describe(*value)), "a GPU's name or an object");
  ObjectReader gpu(*value, in.file(), path);
  return read_gpu_object(gpu, catalog, notes);
}

}  // namespace

std::optional<Nvme> read_nvme(ObjectReader& in) {
  auto nvme = in.object("nvme");
  if (!nvme) return std::nullopt;
  const auto bytes = nvme->integer("bytes", 0);
  if (!bytes) nvme->missing("bytes", "an integer of at least 0");
  const Nvme out{.capacity = Bytes(*bytes),
                 .read_bandwidth = rate(*nvme, "read_bandwidth"),
                 .write_bandwidth = rate(*nvme, "write_bandwidth")};
  nvme->finish();
  return out;
}

namespace {

const Link& named_link(ObjectReader& in, std::string_view key, const HardwareCatalog& catalog) {
  const std::string name = in.text(key).value_or("");
  if (const Link* link = find_link(catalog, name)) return *link;
  std::vector<std::string> names;
  for (const Link& link : catalog.links) names.push_back(link.name);
  in.fail(key, fmt::format("unknown link '{}'", name), "a link of the catalogue, or bytes/s",
          nearest(name, std::span<const std::string>(names)));
}

bool between_nodes(const Link& link) {
  return link.medium == Medium::network;
}

KnownInterconnect read_interconnect(ObjectReader& in, std::int64_t gpus_per_node,
                                    const HardwareCatalog& catalog) {
  KnownInterconnect known;
  const auto use = [&](const Link& link) {
    if (between_nodes(link)) {
      known.inter_node = share_of_gpu(link, gpus_per_node);
      known.inter_node_link = link.name;
    } else {
      known.intra_node = share_of_gpu(link, gpus_per_node);
      known.intra_node_link = link.name;
    }
  };
  const Json* value = in.find("interconnect");
  if (value == nullptr) return known;
  if (value->is_string()) {
    use(named_link(in, "interconnect", catalog));
    return known;
  }
  ObjectReader links(*value, in.file(), in.path_of("interconnect"));
  const auto read = [&](std::string_view key, bool inter_node, std::optional<double>& bandwidth) {
    const Json* given = links.find(key);
    if (given == nullptr) return;
    if (!given->is_string()) {
      bandwidth = rate(links, key);
      return;
    }
    const Link& link = named_link(links, key, catalog);
    if (between_nodes(link) != inter_node) {
      links.fail(
          key,
          between_nodes(link) ? say("{} is a link between nodes", link.name)
                              : say("{} is a link within nodes", link.name),
          inter_node ? "a link between nodes, or bytes/s" : "a link within a node, or bytes/s");
    }
    use(link);
  };
  read("intra_node_bandwidth", false, known.intra_node);
  read("inter_node_bandwidth", true, known.inter_node);
  links.finish();
  return known;
}

void read_prices(ObjectReader& in, Cluster& out) {
  constexpr double kMost = 1e9;
  out.price_per_hour = in.number("price_per_hour", 0, kMost);
  out.spot_price_per_hour = in.number("spot_price_per_hour", 0, kMost);
}

/// What the job says of checkpoints' storage and of failures; the rest as nobody says it.
void read_reliability(ObjectReader& in, Cluster& out, const HardwareCatalog& catalog) {
  out.checkpoint_storage.reset();  // which may follow from the NVMe that the job names
  fill_reliability(out, catalog);
  if (auto storage = in.object("storage")) {
    CheckpointStorage& s = *out.checkpoint_storage;
    const auto read = rate(*storage, "read_bandwidth"), write = rate(*storage, "write_bandwidth");
    if (read && write) s.source = Source::measured;
    s = {read.value_or(s.read_bandwidth), write.value_or(s.write_bandwidth), "storage", s.source,
         true};
    storage->finish();
  }
  Failures& failures = *out.failures;
  if (const auto hours = in.number("hours_between_failures", 1e-3, 1e9)) {
    failures.node_hours = *hours;
    failures.counted_on.clear();
  }
  if (const auto seconds = in.number("restart_seconds", 0, 1e7))
    failures.restart_seconds = *seconds;
}

/// {"name": "4xA100-40GB", ...}: a cluster by its short text, with what else is known about it.
Cluster load_named(ObjectReader& in, const std::string& name, const HardwareCatalog& catalog) {
  Cluster out = at(in.file(), in.path_of("name"), [&] { return resolve_cluster(name, catalog); });
  if (const auto bytes = in.integer("host_memory_bytes", 1)) out.host_memory = Bytes(*bytes);
  if (auto nvme = read_nvme(in)) out.nvme = nvme;
  read_prices(in, out);
  read_reliability(in, out, catalog);
  if (const auto label = in.text("label")) out.label = *label;
  in.finish();
  return out;
}

Cluster load_object(ObjectReader& in, const HardwareCatalog& catalog) {
  if (const auto name = in.text("name")) return load_named(in, *name, catalog);
  Cluster out;
  out.gpus_per_node = in.integer("gpus_per_node", 1, kMostGpus).value_or(1);
  out.nodes = in.integer("nodes", 1, kMostGpus).value_or(1);
  at(in.file(), in.path_of("nodes"), [&] { check_world(out.nodes, out.gpus_per_node); });
  out.gpu = read_gpu(in, catalog, out.notes);
  if (const auto bytes = in.integer("host_memory_bytes", 1)) out.host_memory = Bytes(*bytes);
  out.nvme = read_nvme(in);
  const KnownInterconnect known = read_interconnect(in, out.gpus_per_node, catalog);
  read_prices(in, out);
  read_reliability(in, out, catalog);
  out.list_price = list_price_of(out.gpu.name, out.gpus_per_node, catalog);
  const std::string nodes = out.nodes > 1 ? fmt::format("{}x", out.nodes) : "";
  out.label =
      in.text("label").value_or(fmt::format("{}{}x{}", nodes, out.gpus_per_node, out.gpu.name));
  in.finish();
  fill_interconnect(out, known, catalog);
  return out;
}

}  // namespace

namespace {

/// The path of a cluster's file: as it stands, or beside the file that names it; "" for none. A
/// given text is one under any name.
std::string cluster_file(const std::string& text, const std::string& file) {
  if (given_text(text) != nullptr) return text;
  if (!text.ends_with(".json")) return {};
  const std::filesystem::path named(text);
  for (const std::filesystem::path& path :
       {named, std::filesystem::path(file).parent_path() / named})
    if (std::error_code error; std::filesystem::is_regular_file(path, error)) return path.string();
  return {};
}

}  // namespace

Cluster load_cluster(const Json& value, const std::string& file, const std::string& key_path,
                     const HardwareCatalog& catalog) {
  if (value.is_string()) {
    if (const std::string path = cluster_file(value.get<std::string>(), file); !path.empty()) {
      const Json read = read_json_file(path);
      ObjectReader in(read, path);
      return load_object(in, catalog);
    }
    return at(file, key_path,
              [&] { return resolve_cluster(value.get_ref<const std::string&>(), catalog); });
  }
  if (!value.is_object()) {
    throw InputError({.file = file,
                      .key = key_path,
                      .message = say("found {}", describe(value)),
                      .expected = "a cluster such as \"4xA100-40GB\", or an object"});
  }
  ObjectReader in(value, file, key_path);
  return load_object(in, catalog);
}

}  // namespace shardplan
