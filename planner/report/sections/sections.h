// The sections of a job's report, in the order in which they stand. One file a section.
#pragma once

#include "report/findings.h"
#include "report/report.h"

namespace shardplan::report {

/// What is asked, the verdict, and the figures that a person looks for first.
void add_answer(Report& report, const Findings& findings);

Section resources_section(const Findings& findings);
Section job_section(const Findings& findings);
Section degrees_section(const Findings& findings);  ///< of a divided network
Section models_section(const Findings& findings);   ///< of rlhf
Section memory_section(const Findings& findings);
Section generation_section(const Findings& findings);  ///< of inference
Section step_section(const Findings& findings);
Section stages_section(const Findings& findings);
Section traffic_section(const Findings& findings);
Section time_section(const Findings& findings);
Section cost_section(const Findings& findings);  ///< of a run of so many tokens
Section fixes_section(const Findings& findings);
Section search_section(const Findings& findings);  ///< needs `findings.search`
Section accuracy_section(const Findings& findings);
Section foundation_section(const Findings& findings);
Section reproduction_section(const Findings& findings);

/// The stages of a pipeline that an estimate of a rank stands for: "1–14".
std::string stages_of(const Findings& findings, const Estimate& rank);

/// The fields of a job, as tables of a report list them.
Table job_table(const Findings& findings);
Table machine_table(const Job& job);
Table traffic_table(const Estimate& estimate);
/// `gpus`: of the job, whose throughput it is.
Table time_table(const TimeEstimate& time, std::int64_t gpus);

/// "list price of AWS p5.48xlarge, us-east-1, 2026-07-20"
Text price_words(const ListPrice& price);
/// Money of a cost: dollars where the price is a list's.
Cell money_cell(const Cost& cost, const std::optional<double>& amount);

/// The largest error of steps of a kind, beside their time; empty where none was measured.
Cell error_cell(const std::optional<StepError>& error);

}  // namespace shardplan::report
