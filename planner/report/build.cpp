#include "report/build.h"

#include "report/sections/sections.h"

namespace shardplan::report {

Report job_report(const Findings& f) {
  Report report;
  report.kind = "job";
  report.version = f.origin.version;
  add_answer(report, f);
  report.sections = {resources_section(f), job_section(f),     memory_section(f), step_section(f),
                     stages_section(f),    traffic_section(f), time_section(f),   fixes_section(f)};
  if (f.search) report.sections.push_back(search_section(f));
  for (const auto& section : {accuracy_section, foundation_section, reproduction_section})
    report.sections.push_back(section(f));
  return report;
}

}  // namespace shardplan::report
