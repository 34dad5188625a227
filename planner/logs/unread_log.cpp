#include "logs/unread_log.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "base/diagnostic.h"
#include "logs/lines.h"
#include "logs/log.h"

namespace shardplan::logs {
namespace {

/// PyTorch's own, the CUDA runtime's behind another library, and cuBLAS's for a workspace.
constexpr std::array<std::string_view, 4> kNoMemory{
    "CUDA out of memory", "CUDA error: out of memory", "cudaErrorMemoryAllocation",
    "CUBLAS_STATUS_ALLOC_FAILED"};

/// Where the log says that the GPU had no memory; npos: nowhere.
std::size_t where_it_stopped(std::string_view text) {
  std::size_t first = text.npos;
  for (const std::string_view words : kNoMemory) first = std::min(first, text.find(words));
  return first;
}

/// The first amount, "1.96 GiB", before `words`, such as " is free".
std::string amount_before(std::string_view message, std::string_view words) {
  const std::size_t end = message.find(words);
  if (end == message.npos) return "";
  std::size_t start = message.rfind(' ', end - 1);
  if (start == message.npos || start == 0) return "";
  start = message.rfind(' ', start - 1);
  return start == message.npos ? "" : std::string(message.substr(start + 1, end - start - 1));
}

std::string amount_after(std::string_view message, std::string_view words) {
  const std::size_t found = message.find(words);
  if (found == message.npos) return "";
  const std::string_view rest = message.substr(found + words.size());
  const std::size_t unit = rest.find(' ');
  if (unit == rest.npos) return "";
  const std::size_t end = rest.find_first_not_of("KMGiB", unit + 1);
  return end == unit + 1 ? "" : std::string(rest.substr(0, end));
}

/// Bytes in a unit that is a word of PyTorch's: "512.00 MiB".
std::optional<double> mebibytes(const std::string& amount) {
  const auto number = number_after(amount, "");
  if (!number) return std::nullopt;
  if (amount.ends_with("GiB")) return *number * 1024;
  if (amount.ends_with("MiB")) return *number;
  return amount.ends_with("KiB") ? std::optional(*number / 1024) : std::nullopt;
}

/// As PyTorch words it since 2.1 (c10/cuda/CUDACachingAllocator.cpp, malloc), and before that:
/// "(GPU 0; 39.39 GiB total capacity; 36.40 GiB already allocated; 1.20 GiB free; 37.42 GiB
/// reserved in total by PyTorch)".
struct Said {
  std::string asked, capacity, free, allocated, unused;
  explicit Said(std::string_view message)
      : asked(amount_after(message, "Tried to allocate ")),
        capacity(amount_after(message, "total capacity of ")),
        free(amount_before(message, " is free")),
        allocated(amount_before(message, " is allocated by PyTorch")),
        unused(amount_before(message, " is reserved by PyTorch but unallocated")) {
    if (capacity.empty()) capacity = amount_after(message, "total capacty of ");  // 2.1's spelling
    if (capacity.empty()) capacity = amount_before(message, " total capacity;");
    if (free.empty()) free = amount_before(message, " free;");
    if (allocated.empty()) allocated = amount_before(message, " already allocated");
  }

  std::string text() const {
    std::vector<std::string> parts;
    if (!asked.empty()) parts.push_back(fmt::format("{} was asked for", asked));
    if (!free.empty())
      parts.push_back(capacity.empty() ? fmt::format("{} was free", free)
                                       : fmt::format("{} of {} was free", free, capacity));
    if (!allocated.empty()) parts.push_back(fmt::format("tensors had {}", allocated));
    if (!unused.empty()) parts.push_back(fmt::format("{} lay unused between them", unused));
    return fmt::format("{}", fmt::join(parts, ", "));
  }

  /// What lies unused in pieces would have been enough.
  bool fragmented() const {
    const auto wanted = mebibytes(asked), lost = mebibytes(unused);
    return wanted && lost && *lost >= *wanted;
  }
};

constexpr std::size_t kLongestMessage = 2000;

}  // namespace

void refuse_out_of_memory(std::string_view text, const std::string& file) {
  const std::string plain = without_colours(text);
  const std::size_t at = where_it_stopped(plain);
  if (at == plain.npos) return;
  const Said said(std::string_view(plain).substr(at, kLongestMessage));
  const std::string amounts = said.text();
  throw InputError(
      {.file = file,
       .message = fmt::format("the run stopped for want of GPU memory{}",
                              amounts.empty() ? "" : ": " + amounts),
       .expected = fmt::format(
           "the job that ran, which a log does not say: `shardplan fit MODEL CLUSTER` or "
           "`shardplan fit FILE CLUSTER` says what fills the GPU and what makes room{}",
           said.fragmented() ? "; what lay unused would have been enough: "
                               "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True "
                               "(docs/how-to/problems/fragmentation.md)"
                             : "")});
}

void refuse_log(std::string_view text, const std::string& file) {
  const std::size_t start = text.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  if (start == text.npos || text[start] == '{') return;
  refuse_out_of_memory(text, file);
  const std::string plain = without_colours(text);
  constexpr StepSize kAnyStep{1, 1, 1};
  for (const LogKind& kind : log_kinds()) {
    const Logged logged = kind.read(plain, kAnyStep);
    if (logged.steps.empty() && !logged.mean) continue;
    throw InputError({.file = file,
                      .message = fmt::format("is {}, and no configuration", kind.name),
                      .expected = fmt::format("the job that ran; what a step took beside what is "
                                              "predicted: shardplan anchor {} JOB",
                                              file)});
  }
}

}  // namespace shardplan::logs
