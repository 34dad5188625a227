#include <algorithm>
#include <array>

#include "report/sections/sections.h"
#include "report/words.h"
#include "save/estimate.h"

namespace shardplan::report {
namespace {

constexpr std::size_t kMostPoints = 320;

/// Points [begin, end) of the timeline: one pass of one micro-batch.
struct Span {
  std::size_t begin, end;
};

std::vector<Span> spans_of(const MemoryTimeline& t) {
  std::vector<Span> spans;
  for (std::size_t i = 0; i < t.points.size(); ++i) {
    const bool same = i > 0 && t.points[i].phase == t.points[i - 1].phase &&
                      t.points[i].micro_batch == t.points[i - 1].micro_batch;
    if (same) {
      spans.back().end = i + 1;
    } else {
      spans.push_back({i, i + 1});
    }
  }
  return spans;
}

/// At most `most` points of a span: of each stretch the highest, so that no peak is lost.
std::vector<std::size_t> thinned(const MemoryTimeline& t, const Span& span, std::size_t most) {
  const std::size_t size = span.end - span.begin;
  std::vector<std::size_t> kept;
  const std::size_t stretches = std::min(size, most);
  for (std::size_t s = 0; s < stretches; ++s) {
    const std::size_t begin = span.begin + s * size / stretches;
    const std::size_t end = span.begin + (s + 1) * size / stretches;
    std::size_t highest = begin;
    for (std::size_t i = begin; i < end; ++i)
      if (t.points[i].total > t.points[highest].total) highest = i;
    kept.push_back(highest);
  }
  return kept;
}

/// Whether the job has the phase: a timeline begins before the first one.
bool has_phase(const Estimate& e, Phase phase) {
  return std::find(e.run.begin(), e.run.end(), phase) != e.run.end();
}

/// A pipeline's passes are not numbered: several micro-batches are under way at once.
Text span_label(const Findings& f, const TimelinePoint& point) {
  const Text phase = message("span." + std::string(name_of(point.phase)));
  const bool passes = point.phase == Phase::forward || point.phase == Phase::backward;
  if (f.timeline.micro_batches == 1 || !passes || f.job.plan.parallel.pipeline > 1) return phase;
  return message("span.micro_batch",
                 {{"phase", phase}, {"number", std::to_string(point.micro_batch + 1)}});
}

MemoryAreas areas_of(const Findings& f) {
  const MemoryTimeline& t = f.timeline;
  MemoryAreas chart;
  std::vector<CategoryBytes> all;
  for (const Span& span : spans_of(t)) {
    if (!has_phase(f.estimate, t.points[span.begin].phase)) continue;
    const std::size_t share =
        std::max<std::size_t>(12, kMostPoints * (span.end - span.begin) / t.points.size());
    MemorySpan out{span_label(f, t.points[span.begin]), {}};
    for (const std::size_t i : thinned(t, span, share)) {
      if (i == t.peak) {
        chart.peak_span = chart.spans.size();
        chart.peak_point = out.points.size();
      }
      out.points.push_back(t.points[i].live);
    }
    all.insert(all.end(), out.points.begin(), out.points.end());
    chart.spans.push_back(std::move(out));
  }
  const Estimate& e = f.estimate;
  chart.peak = t.points[t.peak].total;
  chart.peak_label = message("figure.peak", {{"bytes", bytes(chart.peak, Source::modelled)}});
  const CategoryBytes device = at_peak(e);
  chart.room =
      e.usable_bytes - device[index_of(Category::cuda_context)] - device[index_of(Category::nccl)];
  chart.room_label = message("figure.room", {{"bytes", bytes(chart.room, Source::assumed)}});
  chart.legend = legend_of(all, f.job.plan.cluster.gpu.abilities);
  return chart;
}

/// The moments that the phase table lists, as points of the timeline.
struct Moment {
  std::string id;
  std::size_t point = 0;
  std::int64_t rests = 0;  ///< of blocks, which the timeline of tensors does not have
};

std::vector<Moment> moments(const MemoryTimeline& t, const Estimate& e) {
  std::vector<Moment> all{{"begin", 0}};
  for (std::size_t p = 0; p < kPhaseCount; ++p) {
    const Phase phase = static_cast<Phase>(p);
    if (!has_phase(e, phase)) continue;
    std::optional<std::size_t> peak, end;
    for (std::size_t i = 0; i < t.points.size(); ++i) {
      if (t.points[i].phase != phase) continue;
      if (!peak || t.points[i].total > t.points[*peak].total) peak = i;
      end = i;
    }
    if (!peak) continue;
    const auto rests = [&](std::int64_t in_blocks, std::size_t point) {
      return std::max<std::int64_t>(0, in_blocks - t.points[point].total);
    };
    const std::string name(name_of(phase));
    all.push_back({name + "_peak", *peak, rests(e.phases[p].peak, *peak)});
    all.push_back({name + "_end", *end, rests(e.phases[p].end, *end)});
  }
  return all;
}

Source source_of(const Estimate& e, Category category) {
  for (const CategoryLine& line : e.breakdown)
    if (line.category == category) return line.source;
  return Source::modelled;
}

Table phase_table(const Findings& f) {
  const MemoryTimeline& t = f.timeline;
  const std::vector<Moment> columns = moments(t, f.estimate);
  Table table{"phases", message("table.phases"), {{"category"}}, {}};
  for (const Moment& m : columns) table.columns.push_back({m.id, true});
  for (std::size_t c = 0; c < kCategoryCount; ++c) {
    const Category category = static_cast<Category>(c);
    Row row{std::string(name_of(category)),
            {words_of(category, f.job.plan.cluster.gpu.abilities)},
            color_of(category)};
    bool any = false;
    for (const Moment& m : columns) {
      const bool is_rest = category == Category::fragmentation;
      const std::int64_t live = t.points[m.point].live[c] + (is_rest ? m.rests : 0);
      any = any || live != 0;
      row.cells.push_back(live == 0 ? Cell() : Cell(bytes(live, source_of(f.estimate, category))));
    }
    if (any) table.rows.push_back(std::move(row));
  }
  Row total{"total", {message("row.total")}, {}, true};
  for (const Moment& m : columns)
    total.cells.push_back(bytes(t.points[m.point].total + m.rests, Source::modelled));
  table.rows.push_back(std::move(total));
  return table;
}

}  // namespace

Section step_section(const Findings& f) {
  const MemoryTimeline& t = f.timeline;
  Section section{"step", {}};
  section.blocks.push_back(Chart{"timeline", message("figure.timeline"),
                                 message("figure.timeline_description",
                                         {{"peak", bytes(t.points[t.peak].total, Source::modelled)},
                                          {"phase", words_of(t.points[t.peak].phase)}}),
                                 areas_of(f)});
  if (t.micro_batches > 2)
    section.blocks.push_back(Paragraph{message(
        "step.micro_batches", {{"count", count(f.job.plan.workload.gradient_accumulation)}})});
  section.blocks.push_back(phase_table(f));
  return section;
}

}  // namespace shardplan::report
