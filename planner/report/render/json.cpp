#include <nlohmann/json.hpp>

#include "json/document.h"
#include "report/render/render.h"

namespace shardplan::report {
namespace {

/// The same figures as in CSV, so that both are the same on every machine.
Json number(const Quantity& q) {
  return Json::parse(to_number(q));
}

Json cell_json(const Cell& cell, const Messages& messages) {
  if (std::holds_alternative<std::monostate>(cell)) return nullptr;
  if (const auto* q = std::get_if<Quantity>(&cell))
    return Json{{"value", number(*q)}, {"unit", name_of(q->unit)}, {"source", name_of(q->source)}};
  return messages.cell(cell);
}

Json table_json(const Table& table, const Messages& messages) {
  Json rows = Json::array();
  for (const Row& row : table.rows) {
    Json item{{"id", row.id}};
    for (std::size_t c = 0; c < row.cells.size(); ++c)
      item[table.columns[c].id] = cell_json(row.cells[c], messages);
    if (row.marked) item["marked"] = true;
    rows.push_back(std::move(item));
  }
  return Json{{"id", table.id}, {"caption", messages.text(table.caption)}, {"rows", rows}};
}

Json section_json(const Section& section, const Messages& messages) {
  Json json{{"id", section.id}, {"heading", messages.text("section." + section.id)}};
  json["text"] = Json::array();
  json["tables"] = Json::array();
  for (const Block& block : section.blocks) {
    if (const auto* paragraph = std::get_if<Paragraph>(&block)) {
      json["text"].push_back(messages.text(paragraph->text));
    } else if (const auto* table = std::get_if<Table>(&block)) {
      json["tables"].push_back(table_json(*table, messages));
    } else if (const auto* list = std::get_if<List>(&block)) {
      for (const Cell& item : list->items) json[list->id].push_back(messages.cell(item));
    } else if (const auto* code = std::get_if<Code>(&block)) {
      json[code->id] = code->text;
    }
  }
  return json;
}

}  // namespace

std::string report_json(const Report& report, const Messages& messages) {
  Json json{{"schema", "shardplan.report/1"},
            {"kind", report.kind},
            {"version", report.version},
            {"language", messages.language()},
            {"title", messages.text(report.title)}};
  json["verdict"] = report.verdict ? Json(name_of(*report.verdict)) : Json(nullptr);
  json["answer"] = messages.text(report.answer);
  json["facts"] = Json::object();
  for (const Fact& fact : report.facts) json["facts"][fact.id] = cell_json(fact.value, messages);
  json["sections"] = Json::array();
  for (const Section& section : report.sections)
    json["sections"].push_back(section_json(section, messages));
  return json.dump(2) + "\n";
}

}  // namespace shardplan::report
