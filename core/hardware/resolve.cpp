#include "hardware/resolve.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <utility>

#include "base/ascii.h"
#include "base/diagnostic.h"
#include "base/nearest.h"
#include "hardware/abilities.h"
#include "hardware/cluster_text.h"
#include "hardware/generic_gpu.h"
#include "hardware/gpu_names.h"
#include "hardware/interconnect.h"
#include "hardware/prices.h"
#include "hardware/reliability.h"

namespace shardplan {
namespace {

constexpr std::size_t kLongestText = 200;

bool names_gpu(std::string_view name, const HardwareCatalog& catalog) {
  try {
    return !name.empty() && choose_gpu(name, catalog).gpu != nullptr;
  } catch (const InputError&) {  // right but for the memory
    return true;
  }
}

/// Throws for A100x4, and for A100:4 as SkyPilot and Slurm have it.
void check_trailing_count(std::string_view name, const HardwareCatalog& catalog) {
  const auto x = name.find_last_of("x:*");
  if (x == std::string_view::npos || !all_digits(name.substr(x + 1))) return;
  const std::string_view gpu = name.substr(0, x);
  if (!names_gpu(gpu, catalog)) return;
  fail_cluster(fmt::format("the count stands behind the GPU in '{}'", name), "the count first",
               fmt::format("{}x{}", name.substr(x + 1), choose_gpu(gpu, catalog).gpu->gpu.name));
}

/// Throws for fourxA100, where a word stands before the GPU.
void check_leading_count(std::string_view name, const HardwareCatalog& catalog) {
  for (auto x = name.find('x'); x != std::string_view::npos; x = name.find('x', x + 1)) {
    const std::string_view word = name.substr(0, x);
    if (word.find_first_of("0123456789") != std::string_view::npos) return;  // gpu_8x_...
    if (word.empty() || !names_gpu(name.substr(x + 1), catalog)) continue;
    fail_cluster(fmt::format("'{}' is not a count", word), "a whole number, as in 4xA100-40GB");
  }
}

/// Throws for 8H100 and 8-H100, where nothing says that the number counts.
void check_bare_count(std::string_view name, std::string_view counts,
                      const HardwareCatalog& catalog) {
  const auto end = name.find_first_not_of("0123456789");
  if (end == 0 || end == std::string_view::npos) return;
  std::string_view gpu = name.substr(end);
  while (gpu.starts_with('-')) gpu.remove_prefix(1);
  if (!names_gpu(gpu, catalog)) return;
  const std::string count(name.substr(0, end));
  fail_cluster(fmt::format("no x between the count and the GPU in '{}'", name),
               "the count, x and the GPU",
               fmt::format("{}{}x{}", counts, count, choose_gpu(gpu, catalog).gpu->gpu.name));
}

/// GPUs of the catalogue whose names begin with the same letters, and those that have its number:
/// "H20, H100, H200, H800" for H999, "RTX4090, RTX4090D" for 4090Ti.
std::vector<std::string> related_gpus(std::string_view name, const HardwareCatalog& catalog) {
  const auto part = [](std::string_view text, bool digits) {
    const std::string plain = normalized(text);
    const auto from = digits ? std::find_if(plain.begin(), plain.end(), is_digit) : plain.begin();
    const auto end = std::find_if(from, plain.end(), [&](char c) { return is_digit(c) != digits; });
    return std::string(from, end);
  };
  constexpr std::size_t kShortestNumber = 3;
  const std::string letters = part(name, false), number = part(name, true);
  std::vector<std::string> found;
  for (const CatalogGpu& row : catalog.gpus) {
    const bool alike = !letters.empty() && part(row.family, false) == letters;
    const bool same = number.size() >= kShortestNumber && part(row.family, true) == number;
    std::string family = row.family;
    std::erase(family, ' ');
    if ((alike || same) && std::ranges::find(found, family) == found.end())
      found.push_back(std::move(family));
  }
  return found;
}

/// What to write for a GPU that no spelling is near to.
std::string other_clusters(std::string_view name, const HardwareCatalog& catalog) {
  constexpr std::size_t kMost = 6;
  std::vector<std::string> related = related_gpus(name, catalog);
  if (related.empty()) related.emplace_back("4xA100-40GB");
  if (related.size() > kMost) related.resize(kMost);
  return fmt::format(
      "a GPU such as {}, an instance such as p4d.24xlarge, or the memory alone of a GPU that is "
      "not known, such as 8x80GB",
      fmt::join(related, ", "));
}

[[noreturn]] void fail_unknown(std::string_view name, std::string_view counts,
                               const HardwareCatalog& catalog) {
  check_trailing_count(name, catalog);
  check_bare_count(name, counts, catalog);
  std::vector<std::string> candidates = gpu_spellings(catalog);
  if (nearest(name, std::span<const std::string>(candidates)).empty())
    check_leading_count(name, catalog);
  for (const Instance& row : catalog.instances) candidates.push_back(row.name);
  std::string near = nearest(name, std::span<const std::string>(candidates));
  std::string expected = near.empty() ? other_clusters(name, catalog) : std::string(kClusterForms);
  if (!near.empty()) near = std::string(counts) + near;
  fail_cluster(fmt::format("unknown GPU or instance '{}'", name), std::move(expected),
               std::move(near));
}

void note_unverified_memory(const Gpu& gpu, std::vector<std::string>& notes) {
  if (gpu.usable_source != Source::assumed) return;
  notes.push_back(fmt::format("the usable memory of {}, {:.2f} GiB, is not verified", gpu.name,
                              gpu.usable.gib()));
}

void note_assumed_abilities(const Gpu& gpu, std::vector<std::string>& notes) {
  if (std::string note = abilities_note(gpu); !note.empty()) notes.push_back(std::move(note));
}

ResolvedGpu resolve_gpu_name(std::string_view name, std::string_view counts,
                             const HardwareCatalog& catalog) {
  ResolvedGpu out;
  const GpuChoice choice = choose_gpu(name, catalog);
  if (choice.gpu != nullptr) {
    out.gpu = choice.gpu->gpu;
    if (!choice.note.empty()) out.notes.push_back(choice.note);
    note_unverified_memory(out.gpu, out.notes);
    note_assumed_abilities(out.gpu, out.notes);
    return out;
  }
  if (const auto memory = parse_memory_name(name)) {
    if (!memory->has_unit) {
      check_trailing_count(std::string(counts) + std::string(name), catalog);  // 3090x2
      constexpr std::int64_t kFewGigabytes = 10;  // a smaller number is meant to count GPUs
      if (counts.empty() && memory->gb < kFewGigabytes)
        fail_cluster(fmt::format("'{}' is a count alone", name),
                     "the GPU behind it, as in 8xH100, or the memory, as in 8x80GB");
      fail_cluster(fmt::format("'{}' is neither a GPU nor a memory size", name),
                   "a unit behind a memory size", fmt::format("{}{}GB", counts, memory->gb));
    }
    out.gpu = generic_gpu(memory->gb, catalog, out.notes);
    return out;
  }
  fail_unknown(name, counts, catalog);
}

Cluster from_instance(const Instance& row, std::int64_t nodes, const HardwareCatalog& catalog) {
  const CatalogGpu* gpu = find_gpu(catalog, row.gpu);
  if (gpu == nullptr)
    fail_cluster(fmt::format("{} has the GPU {}, which is not known", row.name, row.gpu));
  Cluster out;
  out.gpu = gpu->gpu;
  out.nodes = nodes;
  out.gpus_per_node = row.gpus;
  out.host_memory = row.host_memory;
  note_unverified_memory(out.gpu, out.notes);
  note_assumed_abilities(out.gpu, out.notes);
  if (row.nvme) {
    out.nvme = Nvme{.capacity = *row.nvme};
    if (const Storage* storage =
            row.storage.empty() ? nullptr : find_storage(catalog, row.storage)) {
      out.nvme->read_bandwidth = storage->read_bandwidth;
      out.nvme->write_bandwidth = storage->write_bandwidth;
    }
  }
  for (const auto& [field, what] :
       {std::pair{"host_memory_gib", "host memory"}, std::pair{"nvme_gb", "local NVMe"}}) {
    if (is_unverified(row.unverified, field))
      out.notes.push_back(fmt::format("the {} of {} is not verified", what, row.name));
  }
  KnownInterconnect known;
  if (const auto network = row.gpu_network ? row.gpu_network : row.network) {
    known.inter_node = *network / static_cast<double>(row.gpus);
    known.inter_node_unverified =
        is_unverified(row.unverified, row.gpu_network ? "gpu_network_gbps" : "network_gbps");
    if (nodes > 1 && known.inter_node_unverified)
      out.notes.push_back(fmt::format("the network of {} is not verified", row.name));
  }
  fill_interconnect(out, known, catalog);
  out.list_price = row.price;
  fill_reliability(out, catalog);
  return out;
}

}  // namespace

void check_world(std::int64_t nodes, std::int64_t gpus_per_node) {
  if (gpus_per_node > kMostGpus / nodes) {
    fail_cluster(fmt::format("{} nodes of {} GPUs are too many", nodes, gpus_per_node),
                 fmt::format("at most {} GPUs", kMostGpus));
  }
}

ResolvedGpu resolve_gpu(std::string_view name, const HardwareCatalog& catalog) {
  if (name.size() > kLongestText) fail_cluster(fmt::format("a name of {} characters", name.size()));
  if (normalized(name).empty()) fail_cluster("the name is empty", "a GPU such as A100-40GB");
  return resolve_gpu_name(compact_name(name), "", catalog);
}

Cluster resolve_cluster(std::string_view text, const HardwareCatalog& catalog) {
  if (text.size() > kLongestText)
    fail_cluster(fmt::format("a name of {} characters", text.size()), std::string(kClusterForms));
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos)
    fail_cluster("the name is empty", std::string(kClusterForms));
  const std::string_view shown = text.substr(first, text.find_last_not_of(" \t") - first + 1);
  const ClusterText parts = split_cluster_text(shown);
  const auto& counts = parts.counts;
  if (const Instance* instance = find_instance(catalog, parts.name)) {
    if (counts.size() == 2) {
      fail_cluster(fmt::format("{} already has {} GPUs", instance->name, instance->gpus),
                   "one count, of machines", fmt::format("{}x{}", counts[0], instance->name));
    }
    const std::int64_t nodes = counts.empty() ? 1 : counts[0];
    check_world(nodes, instance->gpus);
    Cluster out = from_instance(*instance, nodes, catalog);
    out.label = shown;
    return out;
  }
  constexpr std::int64_t kUsualNode = 8, kLargestNode = 16;  // the largest of the catalogue
  const bool many = counts.size() == 1 && counts[0] > kLargestNode;
  const bool cut = many && counts[0] % kUsualNode == 0;  // no machine has so many
  const std::int64_t nodes = counts.size() == 2 ? counts[0] : cut ? counts[0] / kUsualNode : 1;
  const std::int64_t gpus_per_node = counts.empty() ? 1 : cut ? kUsualNode : counts.back();
  check_world(nodes, gpus_per_node);
  std::string prefix;
  for (const std::int64_t count : counts) prefix += fmt::format("{}x", count);
  ResolvedGpu resolved = resolve_gpu_name(parts.name, prefix, catalog);
  Cluster out;
  out.label = shown;
  out.gpu = std::move(resolved.gpu);
  out.nodes = nodes;
  out.gpus_per_node = gpus_per_node;
  out.notes = std::move(resolved.notes);
  fill_interconnect(out, {}, catalog);
  out.list_price = list_price_of(out.gpu.name, gpus_per_node, catalog);
  fill_reliability(out, catalog);
  if (cut) {
    out.interconnect_source = Source::assumed;
    out.notes.push_back(fmt::format("{} GPUs are taken as {} machines of {}: write {}x{}x{}",
                                    counts[0], nodes, gpus_per_node, nodes, gpus_per_node,
                                    out.gpu.name));
  } else if (many) {
    out.interconnect_source = Source::assumed;
    out.notes.push_back(
        fmt::format("{0} GPUs are taken as one machine; write {1}x8x{2} for {1} machines of 8",
                    gpus_per_node, ceil_div(gpus_per_node, 8), out.gpu.name));
  }
  return out;
}

}  // namespace shardplan
