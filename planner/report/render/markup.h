// Pieces of HTML and SVG. Coordinates have one decimal, written without a locale.
#pragma once

#include <string>
#include <string_view>

#include "report/messages.h"
#include "report/report.h"

namespace shardplan::report {

/// `text` as the content of an element or of an attribute in double quotes.
std::string escape_markup(std::string_view text);

/// What a cell shows, escaped; words that have no translation are marked as English.
std::string cell_markup(const Cell& cell, const Messages& messages);

enum class Anchor { start, middle, end };

std::string svg_rect(double x, double y, double width, double height, std::string_view css);
std::string svg_line(double x1, double y1, double x2, double y2, std::string_view css);
std::string svg_text(double x, double y, Anchor anchor, std::string_view css,
                     std::string_view words);

/// The element around a drawing: `title` and `description` are what a screen reader says. The
/// caption of the figure has the id "caption-ID".
std::string svg_image(std::string_view id, double width, double height, std::string_view title,
                      std::string_view description, std::string_view content);

inline constexpr double kFigureWidth = 760;

std::string draw_bars(const Chart& chart, const Bars& bars, const Messages& messages);
std::string draw_plane(const Chart& chart, const Plane& plane, const Messages& messages);
std::string draw_areas(const Chart& chart, const MemoryAreas& areas, const Messages& messages);

}  // namespace shardplan::report
