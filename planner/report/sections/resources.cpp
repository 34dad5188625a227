#include "report/sections/sections.h"
#include "report/words.h"

namespace shardplan::report {
namespace {

Row row(const std::string& id, const ResourceVerdict& r, std::optional<std::int64_t> upper,
        Source source) {
  Row out{id, {message("resource." + id)}};
  if (r.needed == 0) {
    out.cells.push_back(message("resource.not_used"));
    out.cells.resize(6);
    return out;
  }
  out.cells.push_back(words_of(r.fit));
  out.cells.push_back(bytes(r.needed, source));
  out.cells.push_back(upper ? Cell(bytes(*upper, source)) : Cell());
  out.cells.push_back(r.available ? Cell(bytes(*r.available, source))
                                  : Cell(message("resource.unknown")));
  out.cells.push_back(
      r.available ? Cell(Quantity{*r.available - r.needed, Unit::bytes, source, true}) : Cell());
  return out;
}

}  // namespace

Section resources_section(const Findings& f) {
  const Estimate& e = f.estimate;
  Table table{"resources",
              message("table.resources"),
              {{"resource"},
               {"verdict"},
               {"needed", true},
               {"upper", true},
               {"available", true},
               {"margin", true}},
              {}};
  Source gpu =
      f.job.plan.cluster.gpu.usable_source == Source::assumed ? Source::assumed : Source::modelled;
  for (const CategoryLine& line : e.breakdown)
    if (line.at_peak > 0) gpu = weaker(gpu, line.source);
  table.rows.push_back(row("gpu", e.verdict.gpu, e.device.upper, gpu));
  table.rows.push_back(row("host", e.verdict.host, std::nullopt, Source::modelled));
  table.rows.push_back(row("nvme", e.verdict.nvme, std::nullopt, Source::modelled));
  return {"resources", {Paragraph{message("resources.meaning")}, std::move(table)}};
}

}  // namespace shardplan::report
