#include "report/sections/sections.h"
#include "report/words.h"

namespace shardplan::report {
namespace {

std::vector<Cell> warnings(const Findings& f) {
  std::vector<Cell> all;
  for (const Diagnostic& d : f.job.diagnostics) all.push_back(Phrase{to_string(d)});
  return all;
}

Table sources_table(const Findings& f) {
  Table table{"sources", message("table.sources"), {{"source"}, {"meaning"}}, {}};
  for (const Source source :
       {Source::exact, Source::modelled, Source::calibrated, Source::measured, Source::assumed}) {
    const std::string name(name_of(source));
    table.rows.push_back({name,
                          {message("source." + name),
                           message("source_meaning." + name, {{"name", f.calibration.name}})}});
  }
  return table;
}

}  // namespace

Section foundation_section(const Findings& f) {
  Section section{"foundation", {}};
  std::vector<Cell> found = warnings(f);
  if (found.empty()) {
    section.blocks.push_back(Paragraph{message("warnings.none")});
  } else {
    section.blocks.push_back(Paragraph{message("warnings.some")});
    section.blocks.push_back(List{"warnings", std::move(found)});
  }
  if (!f.job.assumed.empty()) {
    section.blocks.push_back(Paragraph{message("assumptions")});
    List list{"assumptions", {}};
    for (const std::string& a : f.job.assumed) list.items.push_back(Phrase{a});
    section.blocks.push_back(std::move(list));
  }
  if (f.job.plan.cluster.gpu.arch != f.calibration.arch)
    section.blocks.push_back(
        Paragraph{message("calibration.other_gpu", {{"name", f.calibration.name}})});
  section.blocks.push_back(sources_table(f));
  return section;
}

}  // namespace shardplan::report
