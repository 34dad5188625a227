#include "memory/arena.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "base/format.h"

namespace shardplan::validator {
namespace {

std::string shape_text(const Tensor& t) {
  std::string text;
  for (std::size_t i = 0; i < t.shape.dimensions(); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : ", ", t.shape[i]);
  return fmt::format("{} [{}]", name_of(t.dtype), text);
}

/// "blocks.17.qkv" to "blocks.*.qkv".
std::string without_numbers(const std::string& name) {
  std::string out;
  bool digits = false;
  for (const char c : name) {
    const bool digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    const bool begins = digit && (out.empty() || out.back() == '.');
    if (begins) out += '*';
    digits = begins || (digits && digit);
    if (!digits) out += c;
  }
  return out;
}

}  // namespace

std::int64_t MemoryProfile::peak() const {
  return std::max_element(phases.begin(), phases.end(),
                          [](const auto& a, const auto& b) { return a.peak < b.peak; })
      ->peak;
}

Phase MemoryProfile::peak_phase() const {
  const auto highest = std::max_element(
      phases.begin(), phases.end(), [](const auto& a, const auto& b) { return a.peak < b.peak; });
  return static_cast<Phase>(highest - phases.begin());
}

Tensor Arena::allocate(std::string name, Category category, DType dtype, Shape shape) {
  Tensor tensor{base_ + static_cast<std::uintptr_t>(live_bytes_), dtype, shape};
  const std::int64_t bytes = round_up(tensor.bytes(), kAlignment);
  if (bytes > capacity_ - live_bytes_)
    throw OutOfMemory(
        fmt::format("out of memory: no room for {} ({}, {}, {}): {} of {} are left\n{}", name,
                    shape_text(tensor), format_bytes(bytes), name_of(category),
                    format_bytes(capacity_ - live_bytes_), format_bytes(capacity_), table()));
  live_.push_back({std::move(name), category, tensor, bytes});
  live_bytes_ += bytes;
  by_category_[index_of(category)] += bytes;
  extent_ = std::max(extent_, live_bytes_);
  note_peak();
  return tensor;
}

Tensor Arena::all_since(std::size_t before) const {
  std::int64_t bytes = 0;
  for (std::size_t i = before; i < live_.size(); ++i) bytes += live_[i].bytes;
  const auto end = base_ + static_cast<std::uintptr_t>(live_bytes_);
  return {end - static_cast<std::uintptr_t>(bytes), DType::i8, Shape{bytes}};
}

void Arena::pop_to(std::size_t mark) {
  while (live_.size() > mark) {
    live_bytes_ -= live_.back().bytes;
    by_category_[index_of(live_.back().category)] -= live_.back().bytes;
    live_.pop_back();
  }
}

void Arena::note_peak() {
  if (!phase_) return;
  PhaseMemory& phase = profile_.phases[static_cast<std::size_t>(*phase_)];
  if (live_bytes_ < phase.peak) return;
  phase.peak = live_bytes_;
  phase.at_peak = by_category_;
}

void Arena::begin_phase(Phase phase) {
  phase_ = phase;
  note_peak();
  if (begun_) begun_(phase);
}

void Arena::end_phase() {
  profile_.phases[static_cast<std::size_t>(*phase_)].end = live_bytes_;
  if (*phase_ == Phase::model) profile_.resident = by_category_;
  phase_.reset();
}

void Arena::reset_peaks() {
  for (std::size_t p = 0; p < kPhaseCount; ++p)
    if (const auto phase = static_cast<Phase>(p); phase != Phase::model && phase != Phase::save)
      profile_.phases[p] = {};
}

std::string Arena::table(std::size_t most_rows) const {
  struct Row {
    std::string name;
    Category category = Category::other;
    std::int64_t bytes = 0, count = 0;
  };
  std::map<std::pair<std::string, Category>, Row> merged;
  for (const Allocation& a : live_) {
    const std::string name = without_numbers(a.name);
    Row& row = merged[{name, a.category}];
    row = {name, a.category, row.bytes + a.bytes, row.count + 1};
  }
  std::vector<Row> rows;
  for (const auto& [key, row] : merged) rows.push_back(row);
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.bytes > b.bytes; });
  std::string text =
      fmt::format("alive: {} in {} tensors\n", format_bytes(live_bytes_), live_.size());
  Row rest{.name = "smaller ones"};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i >= most_rows) {
      rest.bytes += rows[i].bytes;
      rest.count += rows[i].count;
      continue;
    }
    text += fmt::format("  {:>10}  {:<22} {}{}\n", format_bytes(rows[i].bytes),
                        name_of(rows[i].category), rows[i].name,
                        rows[i].count > 1 ? fmt::format(" × {}", rows[i].count) : "");
  }
  if (rest.count > 0)
    text += fmt::format("  {:>10}  {:<22} {} × {}\n", format_bytes(rest.bytes), "", rest.name,
                        rest.count);
  return text;
}

}  // namespace shardplan::validator
