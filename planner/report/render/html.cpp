#include <fmt/format.h>

#include <algorithm>

#include "embedded/files.h"
#include "report/render/markup.h"
#include "report/render/render.h"
#include "report/render/tables.h"

namespace shardplan::report {
namespace {

class HtmlPage {
 public:
  HtmlPage(const Report& report, const Messages& messages) : report_(report), words_(messages) {}

  std::string text() {
    const std::string title = escape_markup(words_.text(report_.title));
    out_ = fmt::format(
        "<!DOCTYPE html>\n<html lang=\"{}\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<meta name=\"generator\" content=\"shardplan {}\">\n"
        "<title>{}</title>\n<style>\n{}</style>\n</head>\n<body>\n<main>\n",
        words_.language(), escape_markup(report_.version), title,
        embedded_file("report/style.css"));
    head(title);
    contents();
    for (const Section& section : report_.sections) add(section);
    out_ += fmt::format("</main>\n<footer><p>{}</p></footer>\n</body>\n</html>\n",
                        message({"made_by", {{"version", report_.version}}}));
    return std::move(out_);
  }

 private:
  std::string message(const Text& text) const { return escape_markup(words_.text(text)); }
  std::string message(const std::string& key) const { return escape_markup(words_.text(key)); }
  std::string source_name(Source source) const {
    return message("source." + std::string(name_of(source)));
  }

  void head(const std::string& title) {
    out_ += fmt::format("<header>\n<p class=\"kind\">{}</p>\n<h1>{}</h1>\n",
                        message("kind." + report_.kind), title);
    if (report_.verdict) {
      const std::string fit(name_of(*report_.verdict));
      out_ += fmt::format("<p class=\"verdict {}\"><strong>{}</strong> <span>{}</span></p>\n", fit,
                          message("fit." + fit), message(report_.answer));
    } else {
      out_ += fmt::format("<p class=\"answer\">{}</p>\n", message(report_.answer));
    }
    if (!report_.facts.empty()) {
      out_ += "<ul class=\"facts\">\n";
      for (const Fact& fact : report_.facts) {
        out_ += fmt::format("<li><span>{}</span> <strong>{}</strong>", message("fact." + fact.id),
                            cell_markup(fact.value, words_));
        if (!fact.note.key.empty()) out_ += fmt::format(" <small>{}</small>", message(fact.note));
        out_ += "</li>\n";
      }
      out_ += "</ul>\n";
    }
    out_ += "</header>\n";
  }

  void contents() {
    if (report_.sections.size() < 3) return;
    out_ += fmt::format("<nav aria-label=\"{}\">\n<ul>\n", message("contents"));
    for (const Section& section : report_.sections)
      out_ += fmt::format("<li><a href=\"#{}\">{}</a></li>\n", section.id,
                          message("section." + section.id));
    out_ += "</ul>\n</nav>\n";
  }

  void add(const Section& section) {
    out_ += fmt::format(
        "<section id=\"{0}\" aria-labelledby=\"{0}-heading\">\n"
        "<h2 id=\"{0}-heading\">{1}</h2>\n",
        section.id, message("section." + section.id));
    for (const Block& block : section.blocks) std::visit([this](const auto& b) { add(b); }, block);
    out_ += "</section>\n";
  }

  void add(const Paragraph& paragraph) {
    out_ += fmt::format("<p>{}</p>\n", message(paragraph.text));
  }

  void add(const List& list) {
    out_ += fmt::format("<ul class=\"{}\">\n", list.id);
    for (const Cell& item : list.items)
      out_ += fmt::format("<li>{}</li>\n", cell_markup(item, words_));
    out_ += "</ul>\n";
  }

  void add(const Code& code) {
    out_ +=
        fmt::format("<pre class=\"{}\"><code>{}</code></pre>\n", code.id, escape_markup(code.text));
  }

  void add(const Chart& chart) {
    out_ += fmt::format("<figure>\n<figcaption id=\"caption-{}\">{}</figcaption>\n", chart.id,
                        message(chart.title));
    std::visit([&](const auto& drawing) { draw(chart, drawing); }, chart.drawing);
    out_ += "</figure>\n";
  }

  void draw(const Chart& chart, const Bars& bars) {
    out_ += draw_bars(chart, bars, words_);
    legend(bars.legend);
  }
  void draw(const Chart& chart, const Plane& plane) { out_ += draw_plane(chart, plane, words_); }
  void draw(const Chart& chart, const MemoryAreas& areas) {
    out_ += draw_areas(chart, areas, words_);
    legend(areas.legend);
  }

  void legend(const std::vector<std::pair<std::string, Text>>& entries) {
    if (entries.empty()) return;
    out_ += "<ul class=\"legend\">\n";
    for (const auto& [color, text] : entries)
      out_ += fmt::format("<li class=\"key c-{}\">{}</li>\n", color, message(text));
    out_ += "</ul>\n";
  }

  void add(const Table& table) {
    const SourcePlace place = source_place(table);
    constexpr std::size_t kWide = 10;  // columns that need smaller type to stand beside each other
    out_ +=
        fmt::format("<div class=\"scroll\">\n<table id=\"table-{}\"{}>\n<caption>{}", table.id,
                    table.columns.size() >= kWide ? " class=\"wide\"" : "", message(table.caption));
    if (place == SourcePlace::caption)
      out_ += fmt::format(" <small class=\"source\">{}</small>", source_name(*source_of(table)));
    out_ += "</caption>\n<thead>\n<tr>";
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      const Column& column = table.columns[c];
      const std::optional<Source> source =
          place == SourcePlace::head ? source_of_column(table, c) : std::nullopt;
      out_ += fmt::format(
          "<th scope=\"col\"{}>{}{}</th>", column.numeric ? " class=\"n\"" : "",
          cell_markup(head_of(column), words_),
          source ? fmt::format(" <small class=\"source\">{}</small>", source_name(*source)) : "");
    }
    if (place == SourcePlace::column)
      out_ += fmt::format("<th scope=\"col\">{}</th>", message("column.source"));
    out_ += "</tr>\n</thead>\n<tbody>\n";
    for (const Row& row : table.rows) add(table, row, place);
    out_ += "</tbody>\n</table>\n</div>\n";
  }

  void add(const Table& table, const Row& row, SourcePlace place) {
    out_ += row.marked ? "<tr class=\"here\">" : "<tr>";
    for (std::size_t c = 0; c < row.cells.size(); ++c) {
      const std::string text = cell_markup(row.cells[c], words_);
      if (c == 0) {
        out_ += fmt::format(
            "<th scope=\"row\"{}>{}</th>",
            row.color.empty() ? std::string() : " class=\"key c-" + row.color + "\"", text);
        continue;
      }
      const Column& column = table.columns[c];
      out_ += column.numeric           ? "<td class=\"n\">"
              : column.id == "verdict" ? "<td class=\"word\">"
                                       : "<td>";
      out_ += text;
      const auto* quantity = std::get_if<Quantity>(&row.cells[c]);
      if (place == SourcePlace::cell && quantity != nullptr)
        out_ += fmt::format(" <small class=\"source\">{}</small>", source_name(quantity->source));
      out_ += "</td>";
    }
    if (place == SourcePlace::column) {
      const std::optional<Source> source = source_of(row);
      out_ += fmt::format("<td class=\"source\">{}</td>", source ? source_name(*source) : "");
    }
    out_ += "</tr>\n";
  }

  const Report& report_;
  const Messages& words_;
  std::string out_;
};

}  // namespace

std::string report_html(const Report& report, const Messages& messages) {
  return HtmlPage(report, messages).text();
}

}  // namespace shardplan::report
