#include "render/describe.h"
#include "report/sections/sections.h"
#include "report/words.h"

namespace shardplan::report {
namespace {

Row row(std::size_t number, const Fix& fix) {
  std::vector<Cell> what, how;
  for (const Change& change : fix.changes) {
    what.push_back(Phrase{change.what});
    how.push_back(change.how);
  }
  const Estimate& e = fix.after;
  return {"fix_" + std::to_string(number),
          {joined(what), joined(how), words_of(overall(e.verdict)),
           bytes(e.device.point, Source::modelled), bytes(fix.gpu_saved, Source::modelled),
           e.host_per_node.total() > 0 ? Cell(bytes(e.host_per_node.total(), Source::modelled))
                                       : Cell(),
           fix.slowdown > 0 ? Cell(Quantity{fix.slowdown, Unit::factor, e.time.source}) : Cell()}};
}

}  // namespace

Section fixes_section(const Findings& f) {
  if (f.fixes.empty()) return {"fixes", {Paragraph{message("fixes.none")}}};
  Table table{"fixes",
              message("table.fixes"),
              {{"change"},
               {"how"},
               {"verdict"},
               {"gpu_needed", true},
               {"saves", true},
               {"host_needed", true},
               {"time_factor", true}},
              {}};
  for (std::size_t i = 0; i < f.fixes.size(); ++i) table.rows.push_back(row(i + 1, f.fixes[i]));
  const bool fits = f.estimate.verdict.fits;
  return {
      "fixes",
      {Paragraph{message(fits ? "fixes.more_room" : "fixes.change_verdict")}, std::move(table)}};
}

}  // namespace shardplan::report
