// Aligned columns, wrapped lines and bars of text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shardplan {

enum class Align { left, right };

class TextTable {
 public:
  explicit TextTable(std::vector<Align> columns) : columns_(std::move(columns)) {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  /// Lines that start with `indent`; no trailing spaces.
  std::string text(std::string_view indent = "  ") const;

 private:
  std::vector<Align> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// A bar of `width` cells filled to `share` (0 to 1), in eighths of a cell.
std::string bar(double share, int width);

/// `text` broken at spaces so that no line passes 100 columns; `first` begins the first line,
/// `next` the others. A word that is longer than a line stays whole.
std::string wrapped(std::string_view text, std::string_view first, std::string_view next);

/// Columns that a text takes on a terminal: code points of UTF-8.
std::size_t display_width(std::string_view text);

}  // namespace shardplan
