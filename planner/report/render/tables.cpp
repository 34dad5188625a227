#include "report/render/tables.h"

namespace shardplan::report {
namespace {

/// Whether all numbers of the row have the source of its first.
bool is_uniform(const Row& row) {
  const std::optional<Source> first = source_of(row);
  for (const Cell& cell : row.cells) {
    const auto* quantity = std::get_if<Quantity>(&cell);
    if (quantity != nullptr && quantity->source != *first) return false;
  }
  return true;
}

}  // namespace

std::optional<Source> source_of(const Row& row) {
  for (const Cell& cell : row.cells)
    if (const auto* quantity = std::get_if<Quantity>(&cell)) return quantity->source;
  return std::nullopt;
}

std::optional<Source> source_of(const Table& table) {
  for (const Row& row : table.rows)
    if (const auto source = source_of(row)) return source;
  return std::nullopt;
}

SourcePlace source_place(const Table& table) {
  const std::optional<Source> first = source_of(table);
  if (!first) return SourcePlace::nowhere;
  bool rows_alike = true;
  for (const Row& row : table.rows) {
    if (!is_uniform(row)) return SourcePlace::cell;
    const std::optional<Source> source = source_of(row);
    rows_alike = rows_alike && (!source || source == first);
  }
  return rows_alike ? SourcePlace::caption : SourcePlace::column;
}

}  // namespace shardplan::report
