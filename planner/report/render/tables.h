// How the sources of a table's numbers are shown, the same in every format for people.
#pragma once

#include <optional>

#include "report/report.h"

namespace shardplan::report {

/// Where a table says its sources: once, when all numbers have one; in a column of its own, when
/// the numbers of each row have one; in the heads, when those of each column have; otherwise behind
/// each number. A table with a column "origin" says them there.
enum class SourcePlace : std::uint8_t { nowhere, caption, column, head, cell };
SourcePlace source_place(const Table& table);

/// The source of the first number; nullopt when there is none.
std::optional<Source> source_of(const Row& row);
std::optional<Source> source_of(const Table& table);
std::optional<Source> source_of_column(const Table& table, std::size_t column);

}  // namespace shardplan::report
