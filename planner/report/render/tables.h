// How the sources of a table's numbers are shown, the same in every format for people.
#pragma once

#include <optional>

#include "report/report.h"

namespace shardplan::report {

/// Where a table says its sources: once, when all numbers have one; in a column of its own, when
/// the numbers of each row have one; otherwise behind each number.
enum class SourcePlace : std::uint8_t { nowhere, caption, column, cell };
SourcePlace source_place(const Table& table);

/// The source of the first number; nullopt when there is none.
std::optional<Source> source_of(const Row& row);
std::optional<Source> source_of(const Table& table);

}  // namespace shardplan::report
