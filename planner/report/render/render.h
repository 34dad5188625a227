// A report in each of its formats. One file a format.
#pragma once

#include <string>

#include "report/messages.h"
#include "report/report.h"

namespace shardplan::report {

/// One self-contained page: no network, no scripts.
std::string report_html(const Report& report, const Messages& messages);

/// For a pull request: the answer, and a table for every figure.
std::string report_markdown(const Report& report, const Messages& messages);

/// shardplan.report/1: every table with its numbers, units and sources.
std::string report_json(const Report& report, const Messages& messages);

/// One line a number: section, table, row, column, value, unit, source.
std::string report_csv(const Report& report, const Messages& messages);

/// A field of a CSV line, quoted where it must be.
std::string csv_field(std::string_view text);

}  // namespace shardplan::report
