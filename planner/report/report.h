// A report as data: what is asked, what the answer is, and the sections that it rests on. It holds
// numbers with unit and source, and keys of the message catalogue instead of words, so that every
// format and every language is a rendering of the same thing.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "estimate/estimate.h"
#include "report/quantity.h"

namespace shardplan::report {

/// English words that the core wrote: a warning, the name of a collective. Renderers look them up
/// among the phrases of the language.
struct Phrase {
  std::string english;
};

struct Argument;

/// A message of the catalogue, with what goes into its placeholders.
struct Text {
  std::string key;
  std::vector<Argument> arguments;
};

/// A name that leads to another page.
struct Link {
  std::string words, target;
};

/// What stands in a table or in a message: nothing, words as they are (a name, a command), or
/// something to be rendered.
using Cell = std::variant<std::monostate, std::string, Phrase, Link, Text, Quantity>;

struct Argument {
  std::string name;
  Cell value;
};

struct Column {
  std::string id;  ///< also the key of its head, "column.ID", unless `head` is there
  bool numeric = false;
  Cell head = {};
};

/// What stands above a column.
Cell head_of(const Column& column);

struct Row {
  std::string id;           ///< for programs; unique in its table
  std::vector<Cell> cells;  ///< one a column; the first names the row
  std::string color = {};   ///< of the part of a figure that the row explains: a palette name
  bool marked = false;      ///< the one that the report is about
};

struct Table {
  std::string id;
  Text caption;
  std::vector<Column> columns;
  std::vector<Row> rows;
};

/// One stacked bar.
struct Bar {
  Cell label;
  std::vector<std::pair<std::string, double>> parts;  ///< palette name and length
  std::optional<double> upper;                        ///< where its upper bound is
  Cell value;                                         ///< written beside it
  bool marked = false;
};

/// Bars over one scale, and a line that they should not pass.
struct Bars {
  std::vector<Bar> bars;
  std::optional<double> limit;
  Text limit_label;
  std::vector<std::pair<std::string, Text>> legend;  ///< palette names in the order of the parts
};

/// Live bytes over a step, stacked by category. Every span has a panel of its own, since order and
/// not time is what is known.
struct MemorySpan {
  Text label;
  std::vector<CategoryBytes> points;
};
struct MemoryAreas {
  std::vector<MemorySpan> spans;
  std::size_t peak_span = 0, peak_point = 0;
  std::int64_t peak = 0;
  Text peak_label;
  std::int64_t room = 0;  ///< what the GPU has for tensors
  Text room_label;
  std::vector<std::pair<std::string, Text>> legend;
};

/// Marks in a plane that begins at zero in both directions, and a line that none passes on the
/// right.
struct Mark {
  std::string label;  ///< the row of the table that has its numbers
  double x = 0, y = 0;
  bool marked = false;
};
struct Plane {
  std::vector<Mark> marks;
  Unit x_unit = Unit::bytes, y_unit = Unit::tokens_per_second;
  Text x_label, y_label;
  double limit = 0;
  Text limit_label;
};

/// `table` of the same section has the same numbers for those who cannot see it.
struct Chart {
  std::string id;
  Text title, description;
  std::variant<Bars, MemoryAreas, Plane> drawing;
};

struct Paragraph {
  Text text;
};
struct List {
  std::string id;
  std::vector<Cell> items;
};
/// Something to be copied as it is.
struct Code {
  std::string id, text;
};

using Block = std::variant<Paragraph, Chart, Table, List, Code>;

struct Section {
  std::string id;  ///< also the key of its heading: "section.ID"
  std::vector<Block> blocks;
};

/// A figure of the answer that a person looks for first.
struct Fact {
  std::string id;  ///< also the key of its name: "fact.ID"
  Cell value;
  Text note;
};

struct Report {
  std::string kind;  ///< "job", "difference", "index" or "machines"
  Text title;        ///< what is asked
  std::optional<Fit> verdict;
  Text answer;
  std::vector<Fact> facts;
  std::vector<Section> sections;
  std::string version;  ///< of the program
};

}  // namespace shardplan::report
