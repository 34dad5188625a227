#include <algorithm>

#include "render/search_text.h"
#include "report/sections/sections.h"
#include "report/words.h"

namespace shardplan::report {
namespace {

constexpr std::size_t kMostRows = 20;

Cell axis_cell(const std::string& axis) {
  return Phrase{axis_words(axis)};
}

/// Values are names and numbers of a job file; those with a space in them are words of ours.
Cell value_cell(const std::string& value) {
  if (value.find(' ') == std::string::npos) return value;
  return Phrase{value};
}

Row plan_row(std::string id, const FoundPlan& plan, Cell name,
             const std::vector<std::size_t>& axes) {
  Row row{std::move(id), {std::move(name)}};
  for (const std::size_t axis : axes) row.cells.push_back(value_cell(plan.values[axis]));
  const auto timed = [&](Quantity q) { return plan.step_seconds > 0 ? Cell(q) : Cell(); };
  row.cells.push_back(timed({plan.tokens_per_second, Unit::tokens_per_second, plan.time_source}));
  row.cells.push_back(timed(seconds(plan.step_seconds, plan.time_source)));
  row.cells.push_back(plan.step_seconds > 0 ? error_cell(plan.error) : Cell());
  row.cells.push_back(bytes(plan.device, Source::modelled));
  row.cells.push_back(bytes(plan.device_upper, Source::modelled));
  row.cells.push_back(plan.host > 0 ? Cell(bytes(plan.host, Source::modelled)) : Cell());
  row.cells.push_back(
      plan.gpu_hours_per_billion_tokens
          ? Cell(Quantity{*plan.gpu_hours_per_billion_tokens, Unit::gpu_hours, plan.time_source})
          : Cell());
  return row;
}

Table plan_table(std::string id, Text caption, const FoundSearch& s,
                 const std::vector<std::size_t>& axes) {
  Table table{std::move(id), std::move(caption), {{"place"}}, {}};
  for (const std::size_t axis : axes)
    table.columns.push_back({s.axes[axis], false, Phrase{axis_head(s.axes[axis])}});
  table.columns.insert(table.columns.end(), {{"throughput", true},
                                             {"step_time", true},
                                             {"step_error", true},
                                             {"gpu_needed", true},
                                             {"upper", true},
                                             {"host_needed", true},
                                             {"gpu_hours", true}});
  return table;
}

/// Those that differ on the front: the others would be columns of one value.
std::vector<std::size_t> telling_axes(const FoundSearch& s) {
  std::vector<std::size_t> axes;
  for (std::size_t axis = 0; axis < s.axes.size(); ++axis)
    if (std::any_of(s.front.begin(), s.front.end(), [&](const FoundPlan& plan) {
          return plan.values[axis] != s.front.front().values[axis];
        }))
      axes.push_back(axis);
  return axes;
}

std::vector<std::size_t> all_axes(const FoundSearch& s) {
  std::vector<std::size_t> axes(s.axes.size());
  for (std::size_t axis = 0; axis < axes.size(); ++axis) axes[axis] = axis;
  return axes;
}

/// Every axis with the value that was chosen, and what its neighbours would have done.
Table reasons_table(const FoundSearch& s) {
  Table table{
      "reasons",
      message("table.reasons"),
      {{"axis"}, {"chosen"}, {"instead"}, {"verdict"}, {"gpu_change", true}, {"time_factor", true}},
      {}};
  for (std::size_t axis = 0; axis < s.axes.size(); ++axis) {
    const std::string& name = s.axes[axis];
    const Cell chosen = value_cell(s.front.front().values[axis]);
    const std::size_t before = table.rows.size();
    for (const FoundOther& other : s.others)
      if (other.axis == name)
        table.rows.push_back(
            {name + "/" + other.value,
             {axis_cell(name), chosen, value_cell(other.value), words_of(other.fit),
              Quantity{other.gpu_added, Unit::bytes, Source::modelled, true},
              other.slowdown > 0
                  ? Cell(Quantity{other.slowdown, Unit::factor, s.front.front().time_source})
                  : Cell()}});
    if (table.rows.size() == before)
      table.rows.push_back({name, {axis_cell(name), chosen, {}, {}, {}, {}}});
  }
  return table;
}

Table rules_table(const FoundSearch& s) {
  Table table{
      "ruled_out", message("table.ruled_out"), {{"rule"}, {"plans", true}, {"share", true}}, {}};
  const auto add = [&](std::string id, Cell name, std::int64_t n, bool marked) {
    table.rows.push_back({std::move(id),
                          {std::move(name), count(n),
                           Quantity{static_cast<double>(n) / static_cast<double>(s.candidates),
                                    Unit::fraction, Source::exact}},
                          {},
                          marked});
  };
  for (const RuledOut& rule : s.ruled_out) add(rule.rule, Phrase{rule.rule}, rule.count, false);
  add("front", message("row.front"), static_cast<std::int64_t>(s.front.size()), false);
  add("total", message("row.total"), s.candidates, true);
  return table;
}

Chart front_chart(const FoundSearch& s) {
  Plane plane;
  for (std::size_t i = 0; i < std::min(s.front.size(), kMostRows); ++i)
    plane.marks.push_back({std::to_string(i + 1), static_cast<double>(s.front[i].device),
                           s.front[i].tokens_per_second, i == 0});
  plane.x_label = message("figure.front_memory");
  plane.y_label = message("figure.front_throughput");
  plane.limit = static_cast<double>(s.usable);
  plane.limit_label = message("figure.usable", {{"bytes", bytes(s.usable, Source::exact)}});
  return {"front", message("figure.front"), message("figure.front_description"), std::move(plane)};
}

void add_front(Section& section, const FoundSearch& s) {
  section.blocks.push_back(Paragraph{message("search.best." + s.objective)});
  section.blocks.push_back(reasons_table(s));
  section.blocks.push_back(Paragraph{message("search.front")});
  if (s.front.front().step_seconds > 0 && s.front.size() > 1)
    section.blocks.push_back(front_chart(s));
  const std::vector<std::size_t> axes = telling_axes(s);
  Table table = plan_table("front", message("table.front"), s, axes);
  for (std::size_t i = 0; i < std::min(s.front.size(), kMostRows); ++i) {
    table.rows.push_back(
        plan_row("plan_" + std::to_string(i + 1), s.front[i], std::to_string(i + 1), axes));
    table.rows.back().marked = i == 0;
  }
  section.blocks.push_back(std::move(table));
  if (s.front.size() > kMostRows)
    section.blocks.push_back(Paragraph{message(
        "search.more", {{"count", count(static_cast<std::int64_t>(s.front.size() - kMostRows))}})});
}

/// One plan with all of its values, a row each.
Table single_table(const std::string& id, const FoundSearch& s, const FoundPlan& plan) {
  const std::vector<std::size_t> axes = all_axes(s);
  const Table wide = plan_table(id, {}, s, axes);
  const Row row = plan_row("", plan, {}, axes);
  Table table{id, message("table." + id), {{"field"}, {"value"}}, {}};
  table.rows.push_back({"verdict", {message("column.verdict"), words_of(plan.fit)}});
  for (std::size_t c = 1; c < row.cells.size(); ++c)
    if (!std::holds_alternative<std::monostate>(row.cells[c]))
      table.rows.push_back({wide.columns[c].id, {head_of(wide.columns[c]), row.cells[c]}});
  return table;
}

}  // namespace

Section search_section(const Findings& f) {
  const FoundSearch& s = *f.search;
  Section section{"search",
                  {Paragraph{message("search.looked", {{"candidates", count(s.candidates)},
                                                       {"estimated", count(s.estimated)},
                                                       {"simulated", count(s.simulated)}})}}};
  if (s.interrupted) section.blocks.push_back(Paragraph{message("search.interrupted")});
  if (s.front.empty()) {
    section.blocks.push_back(Paragraph{message("search.nothing")});
    if (s.beyond_limits)
      section.blocks.push_back(single_table("beyond_limits", s, *s.beyond_limits));
    if (s.near_miss) section.blocks.push_back(single_table("near_miss", s, *s.near_miss));
  } else {
    add_front(section, s);
  }
  section.blocks.push_back(rules_table(s));
  return section;
}

}  // namespace shardplan::report
