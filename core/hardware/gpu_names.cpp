#include "hardware/gpu_names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/ascii.h"
#include "base/diagnostic.h"
#include "base/nearest.h"

namespace shardplan {
namespace {

std::string without_maker(std::string name) {
  constexpr std::array<std::string_view, 6> kMakers = {"nvidia", "tesla", "geforce",
                                                       "quadro", "amd",   "instinct"};
  bool again = true;
  while (again) {
    again = false;
    for (const std::string_view maker : kMakers) {
      if (!name.starts_with(maker)) continue;
      name.erase(0, maker.size());
      again = true;
    }
  }
  return name;
}

struct Memory {
  std::int64_t gb = 0;  ///< 0: the name says nothing of memory
  bool has_unit = false;
};

/// "40gb", "40" and ""; nullopt for anything else, such as "040gb".
std::optional<Memory> parse_memory(std::string_view text) {
  if (text.empty()) return Memory{};
  constexpr std::size_t kMostDigits = 5;
  std::size_t digits = 0;
  std::int64_t size = 0;
  while (digits < text.size() && is_digit(text[digits])) {
    if (digits == kMostDigits || text[0] == '0') return std::nullopt;
    size = size * 10 + (text[digits] - '0');
    ++digits;
  }
  const std::string_view unit = text.substr(digits);
  const bool known_unit = unit.empty() || unit == "gb" || unit == "g" || unit == "gib";
  if (digits == 0 || !known_unit) return std::nullopt;
  return Memory{.gb = size, .has_unit = !unit.empty()};
}

/// How the form may be written: "sxm4" and "sxm", "pcie", and always nothing. Longest first.
std::vector<std::string> spellings_of_form(const CatalogGpu& row) {
  std::vector<std::string> out;
  if (!row.form.empty()) {
    out.push_back(normalized(row.form));
    std::string plain = out.back();
    while (is_digit(plain.back())) plain.pop_back();
    if (plain != out.back()) out.push_back(plain);
  }
  out.emplace_back();
  return out;
}

/// The memory that `rest`, a name without its family, asks for; nullopt when `rest` is no name of
/// this GPU whatever its memory.
std::optional<Memory> memory_asked(const CatalogGpu& row, std::string_view rest) {
  for (const std::string& form : spellings_of_form(row)) {
    if (rest.starts_with(form))
      if (const auto memory = parse_memory(rest.substr(form.size()))) return memory;
    if (rest.ends_with(form))
      if (const auto memory = parse_memory(rest.substr(0, rest.size() - form.size())))
        return memory;
  }
  return std::nullopt;
}

bool sold_with(const CatalogGpu& row, std::int64_t memory_gb) {
  return row.memory_gb == memory_gb ||
         std::find(row.other_memory_gb.begin(), row.other_memory_gb.end(), memory_gb) !=
             row.other_memory_gb.end();
}

struct Matches {
  std::vector<const CatalogGpu*> right;
  std::vector<const CatalogGpu*> other_memory;  ///< right but for the memory asked for
  std::int64_t memory_gb = 0;
};

Matches match(std::string_view wanted, const HardwareCatalog& catalog) {
  Matches out;
  for (const CatalogGpu& row : catalog.gpus) {
    std::vector<std::string> families = row.aliases;
    families.push_back(row.family);
    bool right = wanted == normalized(row.gpu.name);
    std::int64_t wrong_memory = 0;
    for (const std::string& name : families) {
      const std::string family = normalized(name);
      if (!wanted.starts_with(family)) continue;
      const auto memory = memory_asked(row, wanted.substr(family.size()));
      if (!memory) continue;
      if (memory->gb == 0 || sold_with(row, memory->gb))
        right = true;
      else if (memory->has_unit)
        wrong_memory = memory->gb;
    }
    if (right) {
      out.right.push_back(&row);
    } else if (wrong_memory != 0) {
      out.other_memory.push_back(&row);
      out.memory_gb = wrong_memory;
    }
  }
  return out;
}

/// The rule in the header: common before rare, SXM before others, then the largest memory.
bool preferred(const CatalogGpu* a, const CatalogGpu* b) {
  if (a->rare != b->rare) return b->rare;
  const bool a_sxm = a->form.starts_with("SXM"), b_sxm = b->form.starts_with("SXM");
  if (a_sxm != b_sxm) return a_sxm;
  return a->memory_gb > b->memory_gb;
}

[[noreturn]] void fail_memory(const Matches& matches) {
  std::vector<const CatalogGpu*> rows = matches.other_memory;
  std::stable_sort(rows.begin(), rows.end(), [](const CatalogGpu* a, const CatalogGpu* b) {
    return a->memory_gb < b->memory_gb;
  });
  Said sizes;
  std::int64_t last = 0;
  for (const CatalogGpu* row : rows) {
    if (row->memory_gb == last) continue;
    last = row->memory_gb;
    const std::string size = fmt::format("{}GB", last);
    sizes = sizes.empty() ? Said(size) : say("{} or {}", sizes, size);
  }
  throw InputError(
      {.key = "cluster",
       .message = fmt::format("no {} has {}GB of memory", rows.front()->family, matches.memory_gb),
       .expected = sizes});
}

}  // namespace

GpuChoice choose_gpu(std::string_view name, const HardwareCatalog& catalog) {
  Matches matches = match(without_maker(normalized(name)), catalog);
  if (matches.right.empty()) {
    if (!matches.other_memory.empty()) fail_memory(matches);
    return {};
  }
  const auto best = std::min_element(matches.right.begin(), matches.right.end(), preferred);
  GpuChoice choice{.gpu = *best};
  if (matches.right.size() > 1) {
    std::vector<std::string> others;
    for (const CatalogGpu* row : matches.right)
      if (row != *best) others.push_back(row->gpu.name);
    choice.note = fmt::format("'{}' was taken as {}; it could also be {}", name,
                              choice.gpu->gpu.name, fmt::join(others, ", "));
  }
  return choice;
}

std::vector<std::string> gpu_spellings(const HardwareCatalog& catalog) {
  std::vector<std::string> out;
  const auto add = [&](std::string spelling) {
    if (std::find(out.begin(), out.end(), spelling) == out.end())
      out.push_back(std::move(spelling));
  };
  for (const CatalogGpu& row : catalog.gpus) {
    std::string family = row.family;
    std::erase(family, ' ');
    add(family);
    add(fmt::format("{}-{}GB", family, row.memory_gb));
    add(row.gpu.name);
  }
  return out;
}

}  // namespace shardplan
