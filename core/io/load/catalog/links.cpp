#include "load/catalog/fields.h"
#include "load/catalog/parts.h"

#include <algorithm>
#include <utility>

namespace shardplan::catalog {
namespace {

Link read_link(ObjectReader& in) {
  static const std::vector<std::string> kMedia = {"nvlink", "xgmi",    "c2c",
                                                  "pcie",   "network", "ethernet"};
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
  link.switch_all_reduce = scaled(in, "switch_all_reduce_gbs", kGiga);
  link.latency = scaled(in, "latency_us", kMicrosecond);
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
  auto object = required_object(in, key);
  const ProtocolLatency out{.ll = required_number(object, "LL") * kMicrosecond,
                            .ll128 = required_number(object, "LL128") * kMicrosecond,
                            .simple = required_number(object, "Simple") * kMicrosecond};
  object.finish();
  return out;
}

NcclLatency read_nccl_latency(ObjectReader& in, std::string_view key) {
  auto object = required_object(in, key);
  NcclLatency out{.tree = read_protocols(object, "tree"),
                  .ring = read_protocols(object, "ring"),
                  .nvls = scaled(object, "nvls", kMicrosecond),
                  .nvls_tree = scaled(object, "nvls_tree", kMicrosecond),
                  .pat = scaled(object, "pat", kMicrosecond)};
  object.finish();
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
  auto in = required_object(root, "nccl");
  out.source = required_text(in, "source");
  out.base = read_nccl_latency(in, "base_latency_us");
  auto hops = required_object(in, "hop_latency_us");
  out.nvlink_hop = read_nccl_latency(hops, "nvlink");
  out.pcie_hop = read_nccl_latency(hops, "pcie");
  out.network_hop = read_nccl_latency(hops, "network");
  hops.finish();
  out.efficiency = read_numbers(in, "efficiency", 1);
  out.bandwidth_per_link = read_numbers(in, "bandwidth_per_link_gbs", kGiga);
  in.finish();
}

}  // namespace

void read_links(ObjectReader& root, HardwareCatalog& out) {
  for_each_row(root, "links", [&](ObjectReader& row) { out.links.push_back(read_link(row)); });
  for_each_row(root, "default_networks", [&](ObjectReader& row) {
    out.default_networks.push_back(read_default_network(row));
  });
  read_nccl(root, out.nccl);
}

}  // namespace shardplan::catalog
