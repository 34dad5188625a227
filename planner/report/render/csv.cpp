#include <fmt/format.h>

#include "report/render/render.h"

namespace shardplan::report {

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

std::string report_csv(const Report& report, const Messages& messages) {
  std::string out = "section,table,row,column,value,unit,source\n";
  const auto line = [&](const std::string& section, const std::string& table,
                        const std::string& row, const std::string& column, const Cell& cell) {
    const auto* q = std::get_if<Quantity>(&cell);
    if (std::holds_alternative<std::monostate>(cell)) return;
    out +=
        fmt::format("{},{},{},{},{},{},{}\n", section, table, csv_field(row), column,
                    csv_field(q != nullptr ? to_number(*q) : messages.cell(cell)),
                    q != nullptr ? name_of(q->unit) : "", q != nullptr ? name_of(q->source) : "");
  };
  if (report.verdict)
    line("answer", "answer", "verdict", "value", std::string(name_of(*report.verdict)));
  for (const Section& section : report.sections)
    for (const Block& block : section.blocks) {
      const auto* table = std::get_if<Table>(&block);
      if (table == nullptr) continue;
      for (const Row& row : table->rows)
        for (std::size_t c = 1; c < row.cells.size(); ++c)
          line(section.id, table->id, row.id, table->columns[c].id, row.cells[c]);
    }
  return out;
}

}  // namespace shardplan::report
