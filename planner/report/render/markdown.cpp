#include <fmt/format.h>

#include <algorithm>

#include "report/render/render.h"
#include "report/render/tables.h"

namespace shardplan::report {
namespace {

/// Text that Markdown takes as it is: no table, emphasis, link or HTML comes of it.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (std::string_view("\\`*_{}[]<>|").find(c) != std::string_view::npos) out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

class MarkdownPage {
 public:
  MarkdownPage(const Report& report, const Messages& messages)
      : report_(report), words_(messages) {}

  std::string text() {
    out_ = fmt::format("# {}\n\n", escaped(words_.text(report_.title)));
    out_ += verdict() + escaped(words_.text(report_.answer)) + "\n";
    if (!report_.facts.empty()) out_ += "\n";
    for (const Fact& fact : report_.facts) {
      out_ += fmt::format("* {}: **{}**", escaped(words_.text("fact." + fact.id)),
                          escaped(words_.cell(fact.value)));
      const std::string note = fact.note.key.empty() ? "" : words_.text(fact.note);
      out_ += note.empty() ? "\n" : fmt::format(" ({})\n", escaped(note));
    }
    for (const Section& section : report_.sections) add(section);
    out_ += fmt::format("\n<sub>{}</sub>\n",
                        escaped(words_.text({"made_by", {{"version", report_.version}}})));
    return std::move(out_);
  }

 private:
  std::string verdict() const {
    if (!report_.verdict) return "";
    return fmt::format("**{}** – ", words_.text("fit." + std::string(name_of(*report_.verdict))));
  }

  void add(const Section& section) {
    out_ += fmt::format("\n## {}\n", escaped(words_.text("section." + section.id)));
    for (const Block& block : section.blocks) std::visit([this](const auto& b) { add(b); }, block);
  }

  void add(const Paragraph& paragraph) {
    out_ += "\n" + escaped(words_.text(paragraph.text)) + "\n";
  }
  void add(const Chart&) {}  // its table says the same
  void add(const List& list) {
    out_ += "\n";
    for (const Cell& item : list.items) out_ += "* " + escaped(words_.cell(item)) + "\n";
  }
  void add(const Code& code) {
    out_ +=
        fmt::format("\n```{}\n{}\n```\n", code.text.starts_with('{') ? "json" : "sh", code.text);
  }

  std::string shown(const Cell& cell, bool with_source) const {
    std::string text = escaped(words_.cell(cell));
    const auto* quantity = std::get_if<Quantity>(&cell);
    if (with_source && quantity != nullptr)
      text += fmt::format(" ({})", source_name(quantity->source));
    return text;
  }

  std::string source_name(Source source) const {
    return words_.text("source." + std::string(name_of(source)));
  }

  void add(const Table& table) {
    const SourcePlace place = source_place(table);
    out_ += "\n" + escaped(words_.text(table.caption));
    if (place == SourcePlace::caption) out_ += fmt::format(" ({})", source_name(*source_of(table)));
    std::string head = "|", rule = "|";
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      const std::optional<Source> source =
          place == SourcePlace::head ? source_of_column(table, c) : std::nullopt;
      head += " " + escaped(words_.cell(head_of(table.columns[c]))) +
              (source ? fmt::format(" ({})", source_name(*source)) : "") + " |";
      rule += table.columns[c].numeric ? " ---: |" : " --- |";
    }
    if (place == SourcePlace::column) {
      head += " " + words_.text("column.source") + " |";
      rule += " --- |";
    }
    out_ += "\n\n" + head + "\n" + rule + "\n";
    for (const Row& row : table.rows) {
      out_ += "|";
      for (const Cell& cell : row.cells) {
        const std::string text = shown(cell, place == SourcePlace::cell);
        out_ += row.marked && !text.empty() ? fmt::format(" **{}** |", text)
                                            : fmt::format(" {} |", text);
      }
      if (place == SourcePlace::column) {
        const std::optional<Source> source = source_of(row);
        out_ += fmt::format(" {} |", source ? source_name(*source) : "");
      }
      out_ += "\n";
    }
  }

  const Report& report_;
  const Messages& words_;
  std::string out_;
};

}  // namespace

std::string report_markdown(const Report& report, const Messages& messages) {
  return MarkdownPage(report, messages).text();
}

}  // namespace shardplan::report
