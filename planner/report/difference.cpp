#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "questions/estimate_job.h"
#include "render/describe.h"
#include "report/build.h"
#include "report/messages.h"
#include "report/sections/sections.h"
#include "report/words.h"
#include "save/estimate.h"

namespace shardplan::report {
namespace {

/// A number before, after, and by how much it changes.
Row numbers_row(std::string id, Cell name, const Quantity& before, const Quantity& after) {
  Quantity change{as_double(after) - as_double(before), after.unit,
                  weaker(before.source, after.source), true};
  if (std::holds_alternative<std::int64_t>(after.value))
    change.value = std::get<std::int64_t>(after.value) - std::get<std::int64_t>(before.value);
  return {std::move(id), {std::move(name), before, after, change}};
}

std::vector<Column> number_columns(const char* first) {
  return {{first}, {"before", true}, {"after", true}, {"change", true}};
}

/// Adds the rows of `after` that `before` has otherwise or not at all, and those that are gone.
void add_changed(Table& changes, const Table& before, const Table& after) {
  const Messages english("en");
  const auto find = [](const Table& in, const std::string& id) {
    return std::find_if(in.rows.begin(), in.rows.end(), [&](const Row& r) { return r.id == id; });
  };
  for (const Row& row : after.rows) {
    const auto old = find(before, row.id);
    const Cell was = old == before.rows.end() ? Cell() : old->cells[1];
    if (english.cell(was) != english.cell(row.cells[1]))
      changes.rows.push_back({row.id, {row.cells[0], was, row.cells[1]}});
  }
  for (const Row& row : before.rows)
    if (find(after, row.id) == after.rows.end())
      changes.rows.push_back({row.id, {row.cells[0], row.cells[1], Cell()}});
}

Section changes_section(const Findings& before, const Findings& after) {
  Table table{"changes", message("table.changes"), {{"field"}, {"before"}, {"after"}}, {}};
  add_changed(table, job_table(before), job_table(after));
  add_changed(table, machine_table(before.job), machine_table(after.job));
  if (table.rows.empty()) return {"changes", {Paragraph{message("changes.none")}}};
  return {"changes", {std::move(table)}};
}

Bar bar_of(const char* label, const Estimate& e) {
  Bar bar{message(label),
          {},
          static_cast<double>(e.device.upper),
          bytes(e.device.point, Source::modelled)};
  for (const CategoryLine& line : e.breakdown)
    if (line.at_peak > 0)
      bar.parts.emplace_back(color_of(line.category), static_cast<double>(line.at_peak));
  return bar;
}

Chart memory_chart(const Estimate& before, const Estimate& after, const GpuAbilities& gpu) {
  Bars bars{{bar_of("column.before", before), bar_of("column.after", after)}, {}, {}, {}};
  if (before.usable_bytes == after.usable_bytes) {
    bars.limit = static_cast<double>(after.usable_bytes);
    bars.limit_label =
        message("figure.usable", {{"bytes", bytes(after.usable_bytes, Source::exact)}});
  }
  bars.legend = legend_of({at_peak(before), at_peak(after)}, gpu);
  return {"difference", message("figure.difference"), message("figure.difference_description"),
          std::move(bars)};
}

/// The names of both, where the GPUs of before and after have runtimes of their own: "CUDA / ROCm".
GpuAbilities names_of_both(const GpuAbilities& before, GpuAbilities after) {
  if (before.runtime != after.runtime) after.runtime = before.runtime + " / " + after.runtime;
  if (before.collectives != after.collectives)
    after.collectives = before.collectives + " / " + after.collectives;
  return after;
}

Section memory_section(const Estimate& before, const Estimate& after, const GpuAbilities& gpu) {
  Table table{"memory", message("table.difference"), number_columns("category"), {}};
  for (std::size_t c = 0; c < kCategoryCount; ++c) {
    const CategoryLine &b = before.breakdown[c], &a = after.breakdown[c];
    if (b.at_peak == 0 && a.at_peak == 0) continue;
    Row row = numbers_row(std::string(name_of(a.category)), words_of(a.category, gpu),
                          bytes(b.at_peak, b.source), bytes(a.at_peak, a.source));
    row.color = color_of(a.category);
    table.rows.push_back(std::move(row));
  }
  const auto add = [&](const char* id, std::int64_t was, std::int64_t is) {
    table.rows.push_back(numbers_row(id, message(std::string("row.") + id),
                                     bytes(was, Source::modelled), bytes(is, Source::modelled)));
  };
  add("total", before.device.point, after.device.point);
  table.rows.back().marked = true;
  add("upper", before.device.upper, after.device.upper);
  add("host", before.host_per_node.total(), after.host_per_node.total());
  add("nvme", before.host_per_node.nvme, after.host_per_node.nvme);
  return {"memory", {memory_chart(before, after, gpu), std::move(table)}};
}

Section traffic_section(const Estimate& before, const Estimate& after) {
  Table table{"traffic", message("table.traffic_difference"), number_columns("what"), {}};
  const auto bytes_in = [](const Estimate& e, const TrafficLine& like) {
    std::int64_t sum = 0;
    for (const TrafficLine& line : e.traffic)
      if (line.what == like.what && line.link == like.link) sum += line.bytes_per_step;
    return bytes(sum, Source::modelled);
  };
  for (const Estimate* e : {&after, &before})
    for (const TrafficLine& line : e->traffic) {
      const std::string id = std::string(line.what) + "/" + words_of(line.link).key;
      const auto known = std::any_of(table.rows.begin(), table.rows.end(),
                                     [&](const Row& row) { return row.id == id; });
      if (!known)
        table.rows.push_back(numbers_row(id, Phrase{std::string(line.what)}, bytes_in(before, line),
                                         bytes_in(after, line)));
    }
  if (table.rows.empty()) return {"traffic", {Paragraph{message("traffic.none")}}};
  return {"traffic", {std::move(table)}};
}

Section time_section(const Findings& b, const Findings& a) {
  const TimeEstimate &before = b.estimate.time, &after = a.estimate.time;
  if (before.step_seconds <= 0 || after.step_seconds <= 0)
    return {"time", {Paragraph{message("time.unknown")}}};
  const Table was = time_table(before, b.job.plan.cluster.world());
  const Table is = time_table(after, a.job.plan.cluster.world());
  Table table{"time", is.caption, number_columns("part"), {}};
  const auto value_in = [](const Table& in, const Row& like) {
    for (const Row& row : in.rows)
      if (row.id == like.id) return std::get<Quantity>(row.cells[1]);
    Quantity none = std::get<Quantity>(like.cells[1]);
    none.value = 0.0;
    return none;
  };
  for (const Table* rows : {&is, &was})
    for (const Row& row : rows->rows) {
      const auto known = std::any_of(table.rows.begin(), table.rows.end(),
                                     [&](const Row& r) { return r.id == row.id; });
      if (!known)
        table.rows.push_back(
            numbers_row(row.id, row.cells[0], value_in(was, row), value_in(is, row)));
    }
  return {"time", {std::move(table)}};
}

Section reproduction(const Findings& before, const Findings& after) {
  return {"reproduction",
          {Paragraph{message("reproduction.command", {{"version", after.origin.version}})},
           Code{"command", after.origin.command}, Paragraph{message("reproduction.before")},
           Code{"job_before", before.origin.job}, Paragraph{message("reproduction.after")},
           Code{"job_after", after.origin.job}}};
}

/// A step, a round and an iteration have nothing in common to take the difference of.
void check_same_kind(const Findings& before, const Findings& after) {
  const WorkKind was = before.job.plan.workload.kind, is = after.job.plan.workload.kind;
  if (was == is) return;
  throw InputError(
      {.file = after.origin.name,
       .key = "workload.kind",
       .message = fmt::format("{}, and {} in {}", name_of(is), name_of(was), before.origin.name),
       .expected = "two jobs of one kind"});
}

/// What only generation or an iteration has, phase by phase.
Section phases_section(const Findings& before, const Findings& after) {
  Table table{"phases", message("table.phase_difference"), number_columns("phase"), {}};
  const auto peak = [](const Estimate& e, Phase phase) {
    return bytes(e.phases[static_cast<std::size_t>(phase)].peak, Source::modelled);
  };
  for (std::size_t p = 0; p < kPhaseCount; ++p) {
    const Phase phase = static_cast<Phase>(p);
    const Quantity was = peak(before.estimate, phase), is = peak(after.estimate, phase);
    if (as_double(was) == 0 && as_double(is) == 0) continue;
    const std::string id(name_of(phase));
    table.rows.push_back(numbers_row(id, message("span." + id), was, is));
  }
  return {"phases", {std::move(table)}};
}

}  // namespace

Report difference_report(const Findings& before, const Findings& after) {
  const Estimate &b = before.estimate, &a = after.estimate;
  check_same_kind(before, after);
  Report report;
  report.kind = "difference";
  report.version = after.origin.version;
  report.title =
      message("title.difference", {{"before", before.origin.name}, {"after", after.origin.name}});
  report.verdict = overall(a.verdict);
  report.answer = message("answer.difference", {{"before", words_of(overall(b.verdict))},
                                                {"after", words_of(overall(a.verdict))}});
  const auto fact = [&](const char* id, const Quantity& was, const Quantity& is) {
    const Row row = numbers_row(id, {}, was, is);
    report.facts.push_back(
        {id, row.cells[3], message("note.from_to", {{"before", was}, {"after", is}})});
  };
  fact("gpu", bytes(b.device.point, Source::modelled), bytes(a.device.point, Source::modelled));
  if (b.host_per_node.total() != a.host_per_node.total())
    fact("host", bytes(b.host_per_node.total(), Source::modelled),
         bytes(a.host_per_node.total(), Source::modelled));
  if (b.time.generation && a.time.generation) {
    const GenerationTime &was = *b.time.generation, &is = *a.time.generation;
    fact("first_token", seconds(was.prefill_seconds, b.time.source),
         seconds(is.prefill_seconds, a.time.source));
    fact("throughput", {was.decode_tokens_per_second, Unit::tokens_per_second, b.time.source},
         {is.decode_tokens_per_second, Unit::tokens_per_second, a.time.source});
  } else if (b.time.step_seconds > 0 && a.time.step_seconds > 0) {
    fact(after.job.rlhf ? "iteration" : "step", seconds(b.time.step_seconds, b.time.source),
         seconds(a.time.step_seconds, a.time.source));
    fact("throughput", {b.time.tokens_per_second, Unit::tokens_per_second, b.time.source},
         {a.time.tokens_per_second, Unit::tokens_per_second, a.time.source});
  }
  const GpuAbilities gpu =
      names_of_both(before.job.plan.cluster.gpu.abilities, after.job.plan.cluster.gpu.abilities);
  report.sections = {changes_section(before, after), memory_section(b, a, gpu),
                     phases_section(before, after),  traffic_section(b, a),
                     time_section(before, after),    reproduction(before, after)};
  return report;
}

}  // namespace shardplan::report
