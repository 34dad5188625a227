#include "load/catalog/fields.h"
#include "load/catalog/parts.h"

#include <cmath>

namespace shardplan::catalog {
namespace {

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

/// Zero bytes where nobody has read the memory: complete_memory() needs all GPUs first.
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

/// Memory that nobody has read comes from the size it is sold with.
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
  for_each_row(root, "gpus", [&](ObjectReader& row) { out.gpus.push_back(read_gpu(row)); });
  complete_memory(out);
  for_each_row(root, "reported_overheads",
               [&](ObjectReader& row) { out.reported_overheads.push_back(read_range(row)); });
}

}  // namespace shardplan::catalog
