#include "hardware/resolve.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/diagnostic.h"
#include "base/nearest.h"
#include "hardware/generic_gpu.h"
#include "hardware/gpu_names.h"
#include "hardware/interconnect.h"

namespace shardplan {
namespace {

constexpr std::string_view kForms =
    "GPUs such as 4xA100-40GB, nodes of GPUs such as 2x8xH100, or an instance such as p4d.24xlarge";
constexpr std::size_t kLongestText = 200;
constexpr std::int64_t kMostMemoryGb = 10'000;

[[noreturn]] void fail(std::string message, std::string expected = "", std::string nearest = "") {
  throw InputError({.key = "cluster",
                    .message = std::move(message),
                    .expected = std::move(expected),
                    .nearest = std::move(nearest)});
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool all_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
}

/// Lower case, without spaces and underscores, "×" as x. Hyphens stay: -4 is no count.
std::string compact(std::string_view text) {
  constexpr std::string_view kTimes = "\u00d7";
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (text.substr(i).starts_with(kTimes)) {
      out += 'x';
      i += kTimes.size() - 1;
    } else if (c != ' ' && c != '\t' && c != '_') {
      out += (c >= 'A' && c <= 'Z') ? static_cast<char>(c - 'A' + 'a') : c;
    }
  }
  return out;
}

/// nullopt when the digits do not fit in 64 bits.
std::optional<std::int64_t> parse_digits(std::string_view digits) {
  std::int64_t value = 0;
  for (const char c : digits) {
    if (__builtin_mul_overflow(value, std::int64_t{10}, &value) ||
        __builtin_add_overflow(value, std::int64_t{c - '0'}, &value))
      return std::nullopt;
  }
  return value;
}

std::int64_t parse_count(std::string_view text) {
  const std::string expected = fmt::format("a count from 1 to {}", kMostGpus);
  const bool negative = text.starts_with('-');
  const std::string_view digits = negative ? text.substr(1) : text;
  if (!all_digits(digits)) fail(fmt::format("'{}' is not a whole number", text), expected);
  if (negative) fail(fmt::format("the count {} is negative", text), expected);
  const auto value = parse_digits(digits);
  if (!value || *value > kMostGpus) fail(fmt::format("the count {} is too large", text), expected);
  if (*value == 0) fail("the count is zero", expected);
  return *value;
}

/// Looks like a number, well formed or not: what stands before an x is then meant as a count.
bool looks_like_count(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  return !text.empty() && is_digit(text.front()) &&
         text.find_first_not_of("0123456789.,e+-") == std::string_view::npos;
}

struct Parts {
  std::vector<std::int64_t> counts;
  std::string name;
};

Parts split(std::string_view shown) {
  const std::string text = compact(shown);
  std::string_view rest = text;
  Parts parts;
  for (;;) {
    const auto x = rest.find('x');
    if (x == std::string_view::npos) break;
    std::string_view count = rest.substr(0, x);
    while (count.size() > 1 && count.ends_with('-')) count.remove_suffix(1);
    if (!looks_like_count(count)) break;
    parts.counts.push_back(parse_count(count));
    rest.remove_prefix(x + 1);
    const bool sign = rest.size() > 1 && rest.front() == '-' && is_digit(rest[1]) &&
                      rest.find('x') != std::string_view::npos;
    while (!sign && rest.starts_with('-')) rest.remove_prefix(1);
  }
  if (rest.empty()) fail(fmt::format("'{}' names no GPU", shown), std::string(kForms));
  if (parts.counts.size() > 2) {
    fail(fmt::format("'{}' has {} counts", shown, parts.counts.size()),
         "at most two: nodes x GPUs of a node x GPU");
  }
  parts.name = rest;
  return parts;
}

/// "40gb" or "40" to 40; nullopt for anything but digits and a unit.
std::optional<std::int64_t> parse_memory(std::string_view name, bool& has_unit) {
  const std::string text = normalized(name);
  const auto end = text.find_first_not_of("0123456789");
  const std::string_view digits = std::string_view(text).substr(0, end);
  const std::string_view unit = end == std::string::npos ? "" : std::string_view(text).substr(end);
  has_unit = !unit.empty();
  if (digits.empty() || (has_unit && unit != "gb" && unit != "g" && unit != "gib"))
    return std::nullopt;
  if (name.find('.') != std::string_view::npos) {
    fail(fmt::format("'{}' is not a whole number of GB", name),
         "a whole number of GB, or an object with memory_bytes");
  }
  const auto value = parse_digits(digits);
  if (!value || *value < 1 || *value > kMostMemoryGb)
    fail(fmt::format("no GPU has {}", name), fmt::format("from 1GB to {}GB", kMostMemoryGb));
  return value;
}

bool names_gpu(std::string_view name, const HardwareCatalog& catalog) {
  try {
    return !name.empty() && choose_gpu(name, catalog).gpu != nullptr;
  } catch (const InputError&) {  // right but for the memory
    return true;
  }
}

/// Throws for A100x4.
void check_trailing_count(std::string_view name, const HardwareCatalog& catalog) {
  const auto x = name.rfind('x');
  if (x == std::string_view::npos || !all_digits(name.substr(x + 1))) return;
  const std::string_view gpu = name.substr(0, x);
  if (!names_gpu(gpu, catalog)) return;
  fail(fmt::format("the count stands behind the GPU in '{}'", name), "the count first",
       fmt::format("{}x{}", name.substr(x + 1), choose_gpu(gpu, catalog).gpu->gpu.name));
}

/// Throws for fourxA100.
void check_leading_count(std::string_view name, const HardwareCatalog& catalog) {
  for (auto x = name.find('x'); x != std::string_view::npos; x = name.find('x', x + 1)) {
    if (x > 0 && names_gpu(name.substr(x + 1), catalog)) {
      fail(fmt::format("'{}' is not a count", name.substr(0, x)),
           "a whole number, as in 4xA100-40GB");
    }
  }
}

[[noreturn]] void fail_unknown(std::string_view name, std::string_view counts,
                               const HardwareCatalog& catalog) {
  check_trailing_count(name, catalog);
  std::vector<std::string> candidates = gpu_spellings(catalog);
  for (const Instance& row : catalog.instances) candidates.push_back(row.name);
  std::string near = nearest(name, std::span<const std::string>(candidates));
  if (near.empty()) check_leading_count(name, catalog);
  if (!near.empty()) near = std::string(counts) + near;
  fail(fmt::format("unknown GPU or instance '{}'", name), std::string(kForms), std::move(near));
}

ResolvedGpu resolve_gpu_name(std::string_view name, std::string_view counts,
                             const HardwareCatalog& catalog) {
  ResolvedGpu out;
  const GpuChoice choice = choose_gpu(name, catalog);
  if (choice.gpu != nullptr) {
    out.gpu = choice.gpu->gpu;
    if (!choice.note.empty()) out.notes.push_back(choice.note);
    if (out.gpu.usable_source == Source::assumed) {
      out.notes.push_back(fmt::format("the usable memory of {}, {:.2f} GiB, is not verified",
                                      out.gpu.name, out.gpu.usable.gib()));
    }
    return out;
  }
  bool has_unit = false;
  if (const auto memory = parse_memory(name, has_unit)) {
    if (!has_unit) {
      fail(fmt::format("'{}' is neither a GPU nor a memory size", name),
           "a unit behind a memory size", fmt::format("{}{}GB", counts, *memory));
    }
    out.gpu = generic_gpu(*memory, catalog, out.notes);
    return out;
  }
  fail_unknown(name, counts, catalog);
}

Cluster from_instance(const Instance& row, std::int64_t nodes, const HardwareCatalog& catalog) {
  const CatalogGpu* gpu = find_gpu(catalog, row.gpu);
  if (gpu == nullptr) fail(fmt::format("{} has the GPU {}, which is not known", row.name, row.gpu));
  Cluster out;
  out.gpu = gpu->gpu;
  out.nodes = nodes;
  out.gpus_per_node = row.gpus;
  out.host_memory = row.host_memory;
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
  return out;
}

}  // namespace

void check_world(std::int64_t nodes, std::int64_t gpus_per_node) {
  if (gpus_per_node > kMostGpus / nodes) {
    fail(fmt::format("{} nodes of {} GPUs are too many", nodes, gpus_per_node),
         fmt::format("at most {} GPUs", kMostGpus));
  }
}

ResolvedGpu resolve_gpu(std::string_view name, const HardwareCatalog& catalog) {
  if (name.size() > kLongestText) fail(fmt::format("a name of {} characters", name.size()));
  if (normalized(name).empty()) fail("the name is empty", "a GPU such as A100-40GB");
  return resolve_gpu_name(compact(name), "", catalog);
}

Cluster resolve_cluster(std::string_view text, const HardwareCatalog& catalog) {
  if (text.size() > kLongestText)
    fail(fmt::format("a name of {} characters", text.size()), std::string(kForms));
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) fail("the name is empty", std::string(kForms));
  const std::string_view shown = text.substr(first, text.find_last_not_of(" \t") - first + 1);
  const Parts parts = split(shown);
  const auto& counts = parts.counts;
  if (const Instance* instance = find_instance(catalog, parts.name)) {
    if (counts.size() == 2) {
      fail(fmt::format("{} already has {} GPUs", instance->name, instance->gpus),
           "one count, of machines", fmt::format("{}x{}", counts[0], instance->name));
    }
    const std::int64_t nodes = counts.empty() ? 1 : counts[0];
    check_world(nodes, instance->gpus);
    Cluster out = from_instance(*instance, nodes, catalog);
    out.label = shown;
    return out;
  }
  const std::int64_t nodes = counts.size() == 2 ? counts[0] : 1;
  const std::int64_t gpus_per_node = counts.empty() ? 1 : counts.back();
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
  constexpr std::int64_t kLargestNode = 16;  // the largest machine of the catalogue
  if (counts.size() == 1 && gpus_per_node > kLargestNode) {
    out.notes.push_back(
        fmt::format("{0} GPUs are taken as one machine; write {1}x8x{2} for {1} machines of 8",
                    gpus_per_node, ceil_div(gpus_per_node, 8), out.gpu.name));
  }
  fill_interconnect(out, {}, catalog);
  return out;
}

}  // namespace shardplan
