#include "load/hardware.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "embedded/files.h"
#include "json/reader.h"

namespace shardplan {
namespace {

constexpr double kGiga = 1e9;
constexpr double kTera = 1e12;
constexpr double kMicro = 1e-6;
constexpr std::int64_t kMib = std::int64_t{1} << 20;
constexpr std::int64_t kGib = std::int64_t{1} << 30;

std::string required_text(ObjectReader& in, std::string_view key) {
  auto value = in.text(key);
  if (!value) in.fail(key, "is missing", "a string");
  return *std::move(value);
}

std::int64_t required_integer(ObjectReader& in, std::string_view key) {
  const auto value = in.integer(key, 1);
  if (!value) in.fail(key, "is missing", "an integer of at least 1");
  return *value;
}

double required_number(ObjectReader& in, std::string_view key) {
  const auto value = in.number(key, 0);
  if (!value) in.fail(key, "is missing", "a number");
  return *value;
}

std::optional<double> scaled(ObjectReader& in, std::string_view key, double unit) {
  const auto value = in.number(key, 0);
  if (!value) return std::nullopt;
  return *value * unit;
}

std::vector<std::string> strings(ObjectReader& in, std::string_view key) {
  std::vector<std::string> out;
  const Json* list = in.array(key);
  if (list == nullptr) return out;
  for (const Json& item : *list) {
    if (!item.is_string()) in.fail(key, "found " + describe(item), "an array of strings");
    out.push_back(item.get<std::string>());
  }
  return out;
}

/// Calls `read` with a reader for every row of the array, and then checks for unknown keys.
template <typename Read>
void for_each_row(ObjectReader& in, std::string_view key, Read read) {
  const Json* rows = in.array(key);
  if (rows == nullptr) in.fail(key, "is missing", "an array");
  std::size_t index = 0;
  for (const Json& row : *rows) {
    ObjectReader reader(row, in.file(), in.path_of(key) + "[" + std::to_string(index++) + "]");
    read(reader);
    reader.finish();
  }
}

PeakFlops read_flops(ObjectReader& in, std::string_view key) {
  auto object = in.object(key);
  if (!object) return {};
  PeakFlops out{.fp32 = scaled(*object, "fp32", kTera),
                .tf32 = scaled(*object, "tf32", kTera),
                .bf16 = scaled(*object, "bf16", kTera),
                .fp16 = scaled(*object, "fp16", kTera),
                .fp8 = scaled(*object, "fp8", kTera),
                .fp4 = scaled(*object, "fp4", kTera)};
  object->finish();
  return out;
}

/// In bytes or MiB where it is known exactly, else in GiB with the two decimals PyTorch prints.
std::optional<Bytes> read_usable(ObjectReader& in) {
  const auto bytes = in.integer("memory_usable_bytes", 1);
  const auto mib = in.integer("memory_usable_mib", 1);
  const auto gib = in.number("memory_usable_gib", 0);
  if (bytes) return Bytes(*bytes);
  if (mib) return Bytes(*mib) * kMib;
  if (gib) return Bytes(std::llround(*gib * static_cast<double>(kGib)));
  return std::nullopt;
}

/// GPUs whose memory nobody has read are completed by complete_memory() when all are there.
CatalogGpu read_gpu(ObjectReader& in) {
  CatalogGpu row;
  Gpu& gpu = row.gpu;
  gpu.name = required_text(in, "name");
  row.family = required_text(in, "family");
  row.form = in.text("form").value_or("");
  row.aliases = strings(in, "aliases");
  row.rare = in.boolean("rare").value_or(false);
  row.memory_gb = required_integer(in, "memory_marketing_gb");
  if (const auto other = in.array("other_memory_gb"))
    for (const Json& size : *other) row.other_memory_gb.push_back(size.get<std::int64_t>());
  gpu.vendor = required_text(in, "vendor");
  gpu.arch = required_text(in, "arch");
  gpu.compute_capability = in.text("compute_capability").value_or("");
  gpu.multiprocessors = in.integer("multiprocessors", 1);
  gpu.memory_type = required_text(in, "memory_type");
  gpu.capacity = Bytes(in.integer("memory_driver_mib", 1).value_or(0)) * kMib;
  gpu.usable = read_usable(in).value_or(Bytes(0));
  gpu.memory_bandwidth = scaled(in, "memory_bandwidth_gbs", kGiga);
  gpu.peak = read_flops(in, "tflops_dense");
  gpu.achievable = read_flops(in, "achievable_tflops");
  if (auto nvlink = in.object("nvlink")) {
    gpu.nvlink_link = required_text(*nvlink, "link");
    gpu.nvlink_bandwidth = required_number(*nvlink, "gbs_per_direction") * kGiga;
    gpu.nvlink_pairs_only = nvlink->boolean("pairs_only").value_or(false);
    nvlink->finish();
  }
  if (auto pcie = in.object("pcie")) {
    gpu.pcie_link = required_text(*pcie, "link");
    gpu.pcie_bandwidth = required_number(*pcie, "gbs_per_direction") * kGiga;
    pcie->finish();
  }
  gpu.tdp_watts = in.number("tdp_watts", 0);
  row.sources = strings(in, "sources");
  gpu.unverified = strings(in, "unverified");
  gpu.note = in.text("note").value_or("");
  if (is_unverified(gpu.unverified, "memory_usable_gib")) gpu.usable_source = Source::assumed;
  return row;
}

void complete_memory(HardwareCatalog& catalog) {
  for (CatalogGpu& row : catalog.gpus)
    if (row.gpu.usable == Bytes(0)) row.gpu.usable_source = Source::assumed;
  for (CatalogGpu& row : catalog.gpus) {
    Gpu& gpu = row.gpu;
    if (gpu.capacity == Bytes(0)) {
      gpu.capacity = Bytes(row.memory_gb) * kGib;
      gpu.unverified.emplace_back("memory_driver_mib");
    }
    if (gpu.usable == Bytes(0)) {
      gpu.usable = typical_usable(catalog, row.memory_gb);
      gpu.unverified.emplace_back("memory_usable_gib");
    }
  }
}

Link read_link(ObjectReader& in) {
  static const std::vector<std::string> kMedia = {"nvlink", "xgmi", "c2c", "pcie", "network"};
  static const std::vector<std::string> kShares = {"gpu", "port", "node"};
  const auto index_of = [&](std::string_view key, const std::vector<std::string>& names) {
    const auto name = in.choice(key, names);
    if (!name) in.fail(key, "is missing");
    return static_cast<std::uint8_t>(std::find(names.begin(), names.end(), *name) - names.begin());
  };
  Link link;
  link.name = required_text(in, "name");
  link.medium = Medium{index_of("medium", kMedia)};
  link.per = LinkShare{index_of("per", kShares)};
  link.bandwidth = required_number(in, "gbs_per_direction") * kGiga;
  link.effective = scaled(in, "effective_gbs", kGiga);
  link.latency = scaled(in, "latency_us", kMicro);
  link.source = required_text(in, "source");
  link.unverified = strings(in, "unverified");
  link.note = in.text("note").value_or("");
  return link;
}

DefaultNetwork read_default_network(ObjectReader& in) {
  DefaultNetwork out{.arch = required_text(in, "arch"),
                     .link = required_text(in, "link"),
                     .ports_per_gpu = in.number("ports_per_gpu", 0),
                     .ports_per_node = in.number("ports_per_node", 0),
                     .source = required_text(in, "source")};
  if (out.ports_per_gpu.has_value() == out.ports_per_node.has_value())
    in.fail("ports_per_gpu", "one of ports_per_gpu and ports_per_node must be there");
  return out;
}

ProtocolLatency read_protocols(ObjectReader& in, std::string_view key) {
  auto object = in.object(key);
  if (!object) in.fail(key, "is missing", "an object");
  const ProtocolLatency out{.ll = required_number(*object, "LL") * kMicro,
                            .ll128 = required_number(*object, "LL128") * kMicro,
                            .simple = required_number(*object, "Simple") * kMicro};
  object->finish();
  return out;
}

NcclLatency read_nccl_latency(ObjectReader& in, std::string_view key) {
  auto object = in.object(key);
  if (!object) in.fail(key, "is missing", "an object");
  NcclLatency out{.tree = read_protocols(*object, "tree"),
                  .ring = read_protocols(*object, "ring"),
                  .nvls = scaled(*object, "nvls", kMicro),
                  .nvls_tree = scaled(*object, "nvls_tree", kMicro),
                  .pat = scaled(*object, "pat", kMicro)};
  object->finish();
  return out;
}

std::vector<std::pair<std::string, double>> read_numbers(ObjectReader& in, std::string_view key,
                                                         double unit) {
  std::vector<std::pair<std::string, double>> out;
  const Json* object = in.find(key);
  if (object == nullptr) in.fail(key, "is missing", "an object");
  ObjectReader reader(*object, in.file(), in.path_of(key));
  for (const auto& [name, value] : object->items())
    out.emplace_back(name, required_number(reader, name) * unit);
  return out;
}

void read_nccl(ObjectReader& root, NcclConstants& out) {
  auto in = root.object("nccl");
  if (!in) root.fail("nccl", "is missing", "an object");
  out.source = required_text(*in, "source");
  out.base = read_nccl_latency(*in, "base_latency_us");
  auto hops = in->object("hop_latency_us");
  if (!hops) in->fail("hop_latency_us", "is missing", "an object");
  out.nvlink_hop = read_nccl_latency(*hops, "nvlink");
  out.pcie_hop = read_nccl_latency(*hops, "pcie");
  out.network_hop = read_nccl_latency(*hops, "network");
  hops->finish();
  out.efficiency = read_numbers(*in, "efficiency", 1);
  out.bandwidth_per_link = read_numbers(*in, "bandwidth_per_link_gbs", kGiga);
  in->finish();
}

Instance read_instance(ObjectReader& in) {
  Instance out;
  out.provider = required_text(in, "provider");
  out.name = required_text(in, "name");
  out.aliases = strings(in, "aliases");
  out.gpu = required_text(in, "gpu");
  out.gpus = required_integer(in, "gpus");
  out.vcpus = in.integer("vcpu", 1);
  if (const auto gib = in.integer("host_memory_gib", 1)) out.host_memory = Bytes(*gib) * kGib;
  const auto nvme_gb = in.integer("nvme_gb", 0);
  const auto nvme_gib = in.integer("nvme_gib", 1);
  if (nvme_gb) out.nvme = Bytes(*nvme_gb) * 1'000'000'000;
  if (nvme_gib) out.nvme = Bytes(*nvme_gib) * kGib;
  out.storage = in.text("storage").value_or("");
  constexpr double kGigabit = kGiga / 8;
  out.network = scaled(in, "network_gbps", kGigabit);
  out.gpu_network = scaled(in, "gpu_network_gbps", kGigabit);
  out.source = required_text(in, "source");
  out.unverified = strings(in, "unverified");
  out.note = in.text("note").value_or("");
  return out;
}

Storage read_storage(ObjectReader& in) {
  return {.name = required_text(in, "name"),
          .read_bandwidth = scaled(in, "read_gbs_per_node", kGiga),
          .write_bandwidth = scaled(in, "write_gbs_per_node", kGiga),
          .source = required_text(in, "source"),
          .unverified = strings(in, "unverified"),
          .note = in.text("note").value_or("")};
}

CpuAdamRate read_cpu_adam(ObjectReader& in) {
  return {.name = required_text(in, "name"),
          .parameters_per_second = required_number(in, "parameters_per_second"),
          .source = required_text(in, "source"),
          .unverified = strings(in, "unverified"),
          .note = in.text("note").value_or("")};
}

ReportedRange read_range(ObjectReader& in) {
  return {.name = required_text(in, "name"),
          .unit = required_text(in, "unit"),
          .source = required_text(in, "source"),
          .least = required_number(in, "least"),
          .most = required_number(in, "most"),
          .typical = in.number("typical", 0)};
}

/// Parses hardware/NAME.json and hands its root to `read`.
template <typename Read>
void read_file(const std::string& name, Read read) {
  const std::string path = "hardware/" + name + ".json";
  const Json json = parse_json(embedded_file(path), path);
  ObjectReader root(json, path);
  root.text("about");
  read(root);
  root.finish();
}

}  // namespace

HardwareCatalog load_hardware_catalog() {
  HardwareCatalog out;
  read_file("gpus", [&](ObjectReader& root) {
    for_each_row(root, "gpus", [&](ObjectReader& row) { out.gpus.push_back(read_gpu(row)); });
    for_each_row(root, "reported_overheads",
                 [&](ObjectReader& row) { out.reported_overheads.push_back(read_range(row)); });
  });
  complete_memory(out);
  read_file("links", [&](ObjectReader& root) {
    for_each_row(root, "links", [&](ObjectReader& row) { out.links.push_back(read_link(row)); });
    for_each_row(root, "default_networks", [&](ObjectReader& row) {
      out.default_networks.push_back(read_default_network(row));
    });
    read_nccl(root, out.nccl);
  });
  read_file("instances", [&](ObjectReader& root) {
    for_each_row(root, "instances",
                 [&](ObjectReader& row) { out.instances.push_back(read_instance(row)); });
  });
  read_file("storage", [&](ObjectReader& root) {
    for_each_row(root, "storage",
                 [&](ObjectReader& row) { out.storage.push_back(read_storage(row)); });
  });
  read_file("host", [&](ObjectReader& root) {
    for_each_row(root, "cpu_adam",
                 [&](ObjectReader& row) { out.cpu_adam.push_back(read_cpu_adam(row)); });
    auto dram = root.object("dram_bytes_per_parameter");
    if (!dram) root.fail("dram_bytes_per_parameter", "is missing", "an object");
    out.dram_bytes_per_adam_parameter = required_number(*dram, "value");
    required_text(*dram, "source");
    strings(*dram, "unverified");
    dram->finish();
  });
  return out;
}

}  // namespace shardplan
