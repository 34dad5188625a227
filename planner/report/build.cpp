#include "report/build.h"

#include "report/sections/sections.h"

namespace shardplan::report {

Report job_report(const Findings& f) {
  Report report;
  report.kind = "job";
  report.version = f.origin.version;
  add_answer(report, f);
  const WorkKind kind = f.job.plan.workload.kind;
  report.sections = {resources_section(f), job_section(f)};
  if (!f.job.plan.parallel.only_data()) report.sections.push_back(degrees_section(f));
  if (kind == WorkKind::rlhf) report.sections.push_back(models_section(f));
  report.sections.push_back(memory_section(f));
  if (kind == WorkKind::inference) report.sections.push_back(generation_section(f));
  for (const auto& section : {step_section, stages_section, traffic_section, time_section})
    report.sections.push_back(section(f));
  if (f.cost.days) report.sections.push_back(cost_section(f));
  report.sections.push_back(fixes_section(f));
  if (f.search) report.sections.push_back(search_section(f));
  for (const auto& section : {accuracy_section, foundation_section, reproduction_section})
    report.sections.push_back(section(f));
  return report;
}

}  // namespace shardplan::report
