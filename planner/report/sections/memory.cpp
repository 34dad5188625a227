#include <algorithm>

#include "report/sections/sections.h"
#include "report/words.h"

namespace shardplan::report {
namespace {

Bar bar_of(const Findings& f, const Estimate& e, bool alone) {
  Bar bar;
  if (alone) {
    bar.label = f.job.plan.cluster.world() == 1 ? message("bar.gpu") : message("bar.each_gpu");
  } else if (f.job.plan.parallel.pipeline > 1) {
    bar.label = message("bar.stage", {{"stage", stages_of(f, e)}});
  } else {
    bar.label = message("bar.rank", {{"rank", count(e.rank)}});
  }
  for (const CategoryLine& line : e.breakdown)
    if (line.at_peak > 0)
      bar.parts.emplace_back(color_of(line.category), static_cast<double>(line.at_peak));
  bar.upper = static_cast<double>(e.device.upper);
  bar.value = bytes(e.device.point, Source::modelled);
  bar.marked = !alone && e.rank == f.estimate.rank;
  return bar;
}

Chart figure(const Findings& f) {
  const Estimate& e = f.estimate;
  Bars bars;
  std::vector<CategoryBytes> all;
  for (const Estimate& rank : f.ranks) {
    bars.bars.push_back(bar_of(f, rank, f.ranks.size() == 1));
    all.push_back(at_peak(rank));
  }
  bars.limit = static_cast<double>(e.usable_bytes);
  bars.limit_label = message("figure.usable", {{"bytes", bytes(e.usable_bytes, Source::exact)}});
  bars.legend = legend_of(all, f.job.plan.cluster.gpu.abilities);
  return {"memory", message("figure.memory", {{"phase", words_of(e.peak_phase)}}),
          message("figure.memory_description", {{"needed", bytes(e.device.point, Source::modelled)},
                                                {"upper", bytes(e.device.upper, Source::modelled)},
                                                {"usable", bytes(e.usable_bytes, Source::exact)}}),
          std::move(bars)};
}

/// Largest first, and the sum.
Table breakdown(const Estimate& e, const GpuAbilities& gpu) {
  Table table{"breakdown",
              message("table.breakdown", {{"phase", words_of(e.peak_phase)}}),
              {{"category"}, {"at_peak", true}, {"share", true}, {"resident", true}},
              {}};
  std::vector<CategoryLine> lines;
  for (const CategoryLine& line : e.breakdown)
    if (line.at_peak > 0 || line.resident > 0) lines.push_back(line);
  std::stable_sort(lines.begin(), lines.end(), [](const CategoryLine& a, const CategoryLine& b) {
    return a.at_peak > b.at_peak;
  });
  Source weakest = Source::exact;
  const double whole = static_cast<double>(std::max<std::int64_t>(e.device.point, 1));
  for (const CategoryLine& line : lines) {
    weakest = weaker(weakest, line.source);
    table.rows.push_back(
        {std::string(name_of(line.category)),
         {words_of(line.category, gpu), bytes(line.at_peak, line.source),
          Quantity{static_cast<double>(line.at_peak) / whole, Unit::fraction, line.source},
          line.resident > 0 ? Cell(bytes(line.resident, line.source)) : Cell()},
         color_of(line.category)});
  }
  table.rows.push_back({"total",
                        {message("row.total"), bytes(e.device.point, weakest),
                         Quantity{1.0, Unit::fraction, weakest}, Cell()},
                        {},
                        true});
  return table;
}

}  // namespace

Section memory_section(const Findings& f) {
  Section section{"memory", {}};
  if (f.ranks.size() > 1)
    section.blocks.push_back(
        Paragraph{message("memory.ranks", {{"rank", count(f.estimate.rank)}})});
  section.blocks.push_back(figure(f));
  section.blocks.push_back(breakdown(f.estimate, f.job.plan.cluster.gpu.abilities));
  section.blocks.push_back(Paragraph{message("memory.meaning")});
  return section;
}

}  // namespace shardplan::report
