#include "load/catalog/fields.h"
#include "load/catalog/parts.h"

namespace shardplan::catalog {
namespace {

Instance read_instance(ObjectReader& in) {
  Instance out;
  out.provider = required_text(in, "provider");
  out.name = required_text(in, "name");
  out.aliases = strings(in, "aliases");
  out.gpu = required_text(in, "gpu");
  out.gpus = required_integer(in, "gpus");
  out.vcpus = in.integer("vcpu", 1);
  if (const auto gib = in.integer("host_memory_gib", 1)) out.host_memory = Bytes(*gib) * kGiB;
  const auto nvme_gb = in.integer("nvme_gb", 0);
  const auto nvme_gib = in.integer("nvme_gib", 1);
  if (nvme_gb) out.nvme = Bytes(*nvme_gb) * 1'000'000'000;
  if (nvme_gib) out.nvme = Bytes(*nvme_gib) * kGiB;
  out.storage = in.text("storage").value_or("");
  constexpr double kGigabit = kGiga / 8;
  out.network = scaled(in, "network_gbps", kGigabit);
  out.gpu_network = scaled(in, "gpu_network_gbps", kGigabit);
  out.source = required_text(in, "source");
  out.unverified = strings(in, "unverified");
  out.note = in.text("note").value_or("");
  return out;
}

/// The instance that a price is of.
Instance& priced(ObjectReader& row, HardwareCatalog& out, const std::string& provider,
                 const std::string& name) {
  for (Instance& instance : out.instances)
    if (instance.name == name && instance.provider == provider) return instance;
  row.fail("instance", "is none of the instances of " + provider);
}

void read_price_list(ObjectReader& list, HardwareCatalog& out) {
  ListPrice common;
  common.provider = required_text(list, "provider");
  common.as_of = required_text(list, "as_of");
  common.source = required_text(list, "source");
  for_each_row(list, "prices", [&](ObjectReader& row) {
    ListPrice price = common;
    price.machine = required_text(row, "instance");
    price.region = required_text(row, "region");
    price.on_demand = required_number(row, "on_demand");
    price.spot = row.number("spot", 0);
    Instance& instance = priced(row, out, price.provider, price.machine);
    price.gpus = price.of_gpus = instance.gpus;
    instance.price = std::move(price);
  });
}

Storage read_storage_row(ObjectReader& in) {
  return {.name = required_text(in, "name"),
          .read_bandwidth = scaled(in, "read_gbs_per_node", kGiga),
          .write_bandwidth = scaled(in, "write_gbs_per_node", kGiga),
          .source = required_text(in, "source"),
          .unverified = strings(in, "unverified"),
          .note = in.text("note").value_or("")};
}

CountedFailures read_counted_failures(ObjectReader& in) {
  CountedFailures out;
  out.name = required_text(in, "name");
  constexpr double kHoursOfDay = 24;
  const double gpu_hours = required_number(in, "gpus") * required_number(in, "days") * kHoursOfDay;
  out.gpu_hours = gpu_hours / required_number(in, "interruptions");
  out.source = required_text(in, "source");
  out.unverified = strings(in, "unverified");
  out.note = in.text("note").value_or("");
  return out;
}

CpuAdamRate read_cpu_adam(ObjectReader& in) {
  return {.name = required_text(in, "name"),
          .parameters_per_second = required_number(in, "parameters_per_second"),
          .source = required_text(in, "source"),
          .unverified = strings(in, "unverified"),
          .note = in.text("note").value_or("")};
}

}  // namespace

void read_instances(ObjectReader& root, HardwareCatalog& out) {
  for_each_row(root, "instances",
               [&](ObjectReader& row) { out.instances.push_back(read_instance(row)); });
}

void read_prices(ObjectReader& root, HardwareCatalog& out) {
  for_each_row(root, "lists", [&](ObjectReader& list) { read_price_list(list, out); });
}

void read_storage(ObjectReader& root, HardwareCatalog& out) {
  out.shared_storage = required_text(root, "shared");
  for_each_row(root, "storage",
               [&](ObjectReader& row) { out.storage.push_back(read_storage_row(row)); });
}

void read_failures(ObjectReader& root, HardwareCatalog& out) {
  for_each_row(root, "failures",
               [&](ObjectReader& row) { out.failures.push_back(read_counted_failures(row)); });
  ObjectReader restart = required_object(root, "restart");
  out.restart_seconds = required_number(restart, "seconds");
  required_text(restart, "source");
  strings(restart, "unverified");
  restart.finish();
}

void read_host(ObjectReader& root, HardwareCatalog& out) {
  for_each_row(root, "cpu_adam",
               [&](ObjectReader& row) { out.cpu_adam.push_back(read_cpu_adam(row)); });
  ObjectReader dram = required_object(root, "dram_bytes_per_parameter");
  out.dram_bytes_per_adam_parameter = required_number(dram, "value");
  required_text(dram, "source");
  strings(dram, "unverified");
  dram.finish();
}

}  // namespace shardplan::catalog
