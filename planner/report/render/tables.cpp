#include "report/render/tables.h"

namespace shardplan::report {
namespace {

const Quantity* number_in(const Row& row, std::size_t column) {
  return column < row.cells.size() ? std::get_if<Quantity>(&row.cells[column]) : nullptr;
}

/// Whether all numbers of the row have the source of its first.
bool is_uniform(const Row& row) {
  const std::optional<Source> first = source_of(row);
  for (std::size_t c = 0; c < row.cells.size(); ++c)
    if (const Quantity* q = number_in(row, c); q != nullptr && q->source != *first) return false;
  return true;
}

bool is_uniform(const Table& table, std::size_t column) {
  const std::optional<Source> first = source_of_column(table, column);
  for (const Row& row : table.rows)
    if (const Quantity* q = number_in(row, column); q != nullptr && q->source != *first)
      return false;
  return true;
}

}  // namespace

std::optional<Source> source_of(const Row& row) {
  for (std::size_t c = 0; c < row.cells.size(); ++c)
    if (const Quantity* q = number_in(row, c)) return q->source;
  return std::nullopt;
}

std::optional<Source> source_of(const Table& table) {
  for (const Row& row : table.rows)
    if (const auto source = source_of(row)) return source;
  return std::nullopt;
}

std::optional<Source> source_of_column(const Table& table, std::size_t column) {
  for (const Row& row : table.rows)
    if (const Quantity* q = number_in(row, column)) return q->source;
  return std::nullopt;
}

SourcePlace source_place(const Table& table) {
  const std::optional<Source> first = source_of(table);
  if (!first) return SourcePlace::nowhere;
  bool each_row = true, all_rows_alike = true, each_column = true;
  for (const Row& row : table.rows) {
    each_row = each_row && is_uniform(row);
    const std::optional<Source> source = source_of(row);
    all_rows_alike = all_rows_alike && (!source || source == first);
  }
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    if (table.columns[c].id == "origin") return SourcePlace::nowhere;
    each_column = each_column && is_uniform(table, c);
  }
  if (each_row) return all_rows_alike ? SourcePlace::caption : SourcePlace::column;
  return each_column ? SourcePlace::head : SourcePlace::cell;
}

}  // namespace shardplan::report
