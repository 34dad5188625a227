#include "render/describe.h"
#include "render/estimate_text.h"
#include "report/sections/sections.h"
#include "report/words.h"

namespace shardplan::report {
namespace {

Cell bytes_or_nothing(std::int64_t n, Source source) {
  return n == 0 ? Cell() : Cell(bytes(n, source));
}

Row row(const std::string& id, const Alternative& a) {
  const Estimate& e = a.estimate;
  return {id,
          {Phrase{a.name}, words_of(overall(e.verdict)), bytes(e.device.point, Source::modelled),
           bytes(e.device.upper, Source::modelled), bytes(model_states(e), Source::exact),
           bytes_or_nothing(e.host_per_node.total(), Source::modelled),
           bytes_or_nothing(e.host_per_node.nvme, Source::modelled),
           bytes_or_nothing(sent(e, LinkKind::gpu), Source::modelled),
           e.time.step_seconds > 0 ? Cell(seconds(e.time.step_seconds, e.time.source)) : Cell()},
          {},
          a.is_current};
}

}  // namespace

Section stages_section(const Findings& f) {
  Table table{"stages",
              message("table.stages"),
              {{"plan"},
               {"verdict"},
               {"gpu_needed", true},
               {"upper", true},
               {"states", true},
               {"host_needed", true},
               {"nvme_needed", true},
               {"sent", true},
               {"step_time", true}},
              {}};
  Bars bars;
  std::vector<CategoryBytes> all;
  for (std::size_t i = 0; i < f.alternatives.size(); ++i) {
    const Alternative& a = f.alternatives[i];
    table.rows.push_back(row("plan_" + std::to_string(i + 1), a));
    Bar bar{Phrase{a.name},
            {},
            static_cast<double>(a.estimate.device.upper),
            bytes(a.estimate.device.point, Source::modelled),
            a.is_current};
    for (const CategoryLine& line : a.estimate.breakdown)
      if (line.at_peak > 0)
        bar.parts.emplace_back(color_of(line.category), static_cast<double>(line.at_peak));
    bars.bars.push_back(std::move(bar));
    all.push_back(at_peak(a.estimate));
  }
  bars.limit = static_cast<double>(f.estimate.usable_bytes);
  bars.limit_label =
      message("figure.usable", {{"bytes", bytes(f.estimate.usable_bytes, Source::exact)}});
  bars.legend = legend_of(all);
  return {"stages",
          {Paragraph{message("stages.meaning")},
           Chart{"stages", message("figure.stages"), message("figure.stages_description"),
                 std::move(bars)},
           std::move(table)}};
}

}  // namespace shardplan::report
