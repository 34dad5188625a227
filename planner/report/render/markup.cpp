#include "report/render/markup.h"

#include <fmt/format.h>

#include "report/render/svg_attributes.h"

namespace shardplan::report {

std::string escape_markup(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        // XML and HTML have no way to write the other control characters.
        if (static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t') out += c;
    }
  }
  return out;
}

std::string cell_markup(const Cell& cell, const Messages& messages) {
  if (const auto* link = std::get_if<Link>(&cell))
    return fmt::format("<a href=\"{}\">{}</a>", escape_markup(link->target),
                       escape_markup(link->words));
  const auto* phrase = std::get_if<Phrase>(&cell);
  if (phrase != nullptr && !messages.phrase(phrase->english))
    return fmt::format("<span lang=\"en\">{}</span>", escape_markup(phrase->english));
  return escape_markup(messages.cell(cell));
}

std::string svg_rect(double x, double y, double width, double height, std::string_view css) {
  return fmt::format(
      "<rect class=\"{}\"{} x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" "
      "height=\"{:.1f}\"/>\n",
      css, svg_attributes("rect", css), x, y, width, height);
}

std::string svg_line(double x1, double y1, double x2, double y2, std::string_view css) {
  return fmt::format(
      "<line class=\"{}\"{} x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n", css,
      svg_attributes("line", css), x1, y1, x2, y2);
}

std::string svg_text(double x, double y, Anchor anchor, std::string_view css,
                     std::string_view words) {
  const std::string_view where = anchor == Anchor::start    ? "start"
                                 : anchor == Anchor::middle ? "middle"
                                                            : "end";
  return fmt::format(
      "<text class=\"{}\"{} x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", css,
      svg_attributes("text", css), x, y, where, escape_markup(words));
}

std::string svg_image(std::string_view id, double width, double height, std::string_view title,
                      std::string_view description, std::string_view content) {
  return fmt::format(
      "<svg role=\"img\" aria-labelledby=\"caption-{0}\" aria-describedby=\"description-{0}\" "
      "viewBox=\"0 0 {1:.0f} {2:.0f}\" "
      "xmlns=\"http://www.w3.org/2000/svg\">\n<title>{3}</title>\n"
      "<desc id=\"description-{0}\">{4}</desc>\n{5}</svg>\n",
      id, width, height, escape_markup(title), escape_markup(description), content);
}

}  // namespace shardplan::report
