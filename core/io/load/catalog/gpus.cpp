#include "load/catalog/fields.h"
#include "load/catalog/parts.h"

#include <algorithm>
#include <cmath>

#include "load/abilities.h"

namespace shardplan::catalog {
namespace {

PeakFlops read_flops(ObjectReader& in, std::string_view key) {
  auto object = in.object(key);
  if (!object) return {};
  PeakFlops out;
  out.for_each([&](std::string_view name, std::optional<double>& rate) {
    rate = scaled(*object, name, kTera);
  });
  object->finish();
  return out;
}

/// After the architecture that it is like, which fills what it leaves open.
Architecture read_architecture(ObjectReader& in, const HardwareCatalog& catalog) {
  Architecture row;
  row.name = required_text(in, "name");
  row.vendor = required_text(in, "vendor");
  row.like = in.text("like").value_or("");
  const StatedAbilities stated = read_abilities(in);
  if (stated.keys.size() < kAbilityFields.size()) {
    const Architecture* like = find_architecture(catalog, row.like);
    if (like == nullptr) in.fail("like", "must name an architecture above, for what is not stated");
    row.abilities = like->abilities;
  }
  for (const AbilityField& field : kAbilityFields)
    if (std::find(stated.keys.begin(), stated.keys.end(), field.key) == stated.keys.end())
      row.assumed.emplace_back(field.key);
  state(row.abilities, stated);
  row.sources = strings(in, "sources");
  row.unverified = strings(in, "unverified");
  row.note = in.text("note").value_or("");
  return row;
}

/// Those of its architecture, and what the GPU's own row states.
void take_abilities(Gpu& gpu, ObjectReader& in, const HardwareCatalog& catalog) {
  const Architecture* arch = find_architecture(catalog, gpu.arch);
  if (arch == nullptr) in.fail("arch", "is none of the architectures");
  gpu.abilities = arch->abilities;
  gpu.assumed_abilities = arch->assumed;
  gpu.abilities_like = arch->like;
  const StatedAbilities own = read_abilities(in);
  state(gpu.abilities, own);
  std::erase_if(gpu.assumed_abilities, [&](const std::string& key) {
    return std::find(own.keys.begin(), own.keys.end(), key) != own.keys.end();
  });
}

/// In bytes or MiB where it is known exactly, else in GiB with the two decimals PyTorch prints.
std::optional<Bytes> read_usable(ObjectReader& in) {
  const auto bytes = in.integer("memory_usable_bytes", 1);
  const auto mib = in.integer("memory_usable_mib", 1);
  const auto gib = in.number("memory_usable_gib", 0);
  if (bytes) return Bytes(*bytes);
  if (mib) return Bytes(*mib) * kMiB;
  if (gib) return Bytes(std::llround(*gib * static_cast<double>(kGiB)));
  return std::nullopt;
}

/// Zero bytes where nobody has read the memory: complete_memory() needs all GPUs first.
CatalogGpu read_gpu(ObjectReader& in, const HardwareCatalog& catalog) {
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
  take_abilities(gpu, in, catalog);
  gpu.multiprocessors = in.integer("multiprocessors", 1);
  if (const auto cache = in.integer("l2_cache_mib", 1)) gpu.l2_cache_bytes = *cache * kMiB;
  gpu.memory_type = required_text(in, "memory_type");
  gpu.capacity = Bytes(in.integer("memory_driver_mib", 1).value_or(0)) * kMiB;
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
  gpu.full_watts = in.number("full_watts", 0);
  gpu.small_passes = in.boolean("small_engine_passes").value_or(false);
  row.sources = strings(in, "sources");
  gpu.unverified = strings(in, "unverified");
  gpu.note = in.text("note").value_or("");
  if (is_unverified(gpu.unverified, "memory_usable_gib")) gpu.usable_source = Source::assumed;
  return row;
}

/// Memory that nobody has read comes from the size it is sold with.
void complete_memory(HardwareCatalog& catalog) {
  for (CatalogGpu& row : catalog.gpus)
    if (row.gpu.usable == Bytes(0)) row.gpu.usable_source = Source::assumed;
  for (CatalogGpu& row : catalog.gpus) {
    Gpu& gpu = row.gpu;
    if (gpu.capacity == Bytes(0)) {
      gpu.capacity = Bytes(row.memory_gb) * kGiB;
      gpu.unverified.emplace_back("memory_driver_mib");
    }
    if (gpu.usable == Bytes(0)) {
      gpu.usable = typical_usable(catalog, row.memory_gb);
      gpu.unverified.emplace_back("memory_usable_gib");
    }
  }
}

ReportedRange read_range(ObjectReader& in) {
  return {.name = required_text(in, "name"),
          .unit = required_text(in, "unit"),
          .source = required_text(in, "source"),
          .least = required_number(in, "least"),
          .most = required_number(in, "most"),
          .typical = in.number("typical", 0)};
}

}  // namespace

void read_gpus(ObjectReader& root, HardwareCatalog& out) {
  for_each_row(root, "architectures", [&](ObjectReader& row) {
    out.architectures.push_back(read_architecture(row, out));
  });
  for_each_row(root, "gpus", [&](ObjectReader& row) { out.gpus.push_back(read_gpu(row, out)); });
  complete_memory(out);
  for_each_row(root, "reported_overheads",
               [&](ObjectReader& row) { out.reported_overheads.push_back(read_range(row)); });
}

}  // namespace shardplan::catalog
