#include <fmt/format.h>

#include <array>
#include <cmath>

#include "parallel/support.h"
#include "questions/estimate_job.h"
#include "render/describe.h"
#include "report/batch/batch.h"
#include "report/render/render.h"
#include "report/sections/sections.h"
#include "report/words.h"

namespace shardplan::report {
namespace {

Cell joined_with(const Text& framework, const Cell& degrees) {
  if (std::holds_alternative<std::monostate>(degrees)) return framework;
  return message("list.with", {{"left", framework}, {"right", degrees}});
}

Row row_of(std::size_t n, const BatchOutcome& outcome, const std::string& page) {
  const Plan& plan = outcome.job->plan;
  const Estimate& e = *outcome.estimate;
  const Cell name = page.empty() ? Cell(outcome.name) : Cell(Link{outcome.name, page});
  const auto time = [&](const Quantity& q) { return e.time.step_seconds > 0 ? Cell(q) : Cell(); };
  return {"job_" + std::to_string(n + 1),
          {name, model_name(outcome.job->model), cluster_words(plan.cluster),
           joined_with(framework_words(plan), degree_words(plan)), words_of(overall(e.verdict)),
           bytes(e.device.point, Source::modelled), bytes(e.device.upper, Source::modelled),
           bytes(e.usable_bytes, Source::exact),
           e.host_per_node.total() > 0 ? Cell(bytes(e.host_per_node.total(), Source::modelled))
                                       : Cell(),
           time(seconds(e.time.step_seconds, e.time.source)),
           time({e.time.tokens_per_second, Unit::tokens_per_second, e.time.source}),
           e.time.step_seconds > 0 ? error_cell(e.time.error) : Cell()}};
}

/// "tensor=8 pipeline=16", for programs.
std::string degrees_of(const Plan& plan) {
  std::string all;
  for (std::size_t i = 0; i < kDegreeNames.size(); ++i) {
    const std::int64_t ranks = plan.parallel.*member_of(static_cast<Degree>(i));
    if (ranks > 1) all += fmt::format("{}{}={}", all.empty() ? "" : " ", kDegreeNames[i], ranks);
  }
  return all;
}

struct OutcomeCounts {
  std::int64_t fits = 0, tight = 0, none = 0, broken = 0;
};

OutcomeCounts counts_of(const std::vector<BatchOutcome>& outcomes) {
  OutcomeCounts t;
  for (const BatchOutcome& outcome : outcomes) {
    if (!outcome.estimate) {
      ++t.broken;
      continue;
    }
    const Fit fit = overall(outcome.estimate->verdict);
    ++(fit == Fit::fits ? t.fits : fit == Fit::tight ? t.tight : t.none);
  }
  return t;
}

}  // namespace

Report index_report(const std::vector<BatchOutcome>& outcomes, const std::string& version,
                    const std::function<std::string(std::size_t)>& page_of) {
  Report report;
  report.kind = "index";
  report.version = version;
  const auto size = static_cast<std::int64_t>(outcomes.size());
  const OutcomeCounts counts = counts_of(outcomes);
  report.title = message("title.index", {{"jobs", count(size)}});
  report.answer = message("answer.index", {{"fits", count(counts.fits)},
                                           {"tight", count(counts.tight)},
                                           {"none", count(counts.none)},
                                           {"broken", count(counts.broken)}});
  Table jobs{"jobs",
             message("table.jobs"),
             {{"job"},
              {"model"},
              {"cluster"},
              {"framework"},
              {"verdict"},
              {"gpu_needed", true},
              {"upper", true},
              {"usable", true},
              {"host_needed", true},
              {"step_time", true},
              {"throughput", true},
              {"step_error", true}},
             {}};
  Table broken{"broken", message("table.broken"), {{"job"}, {"error"}}, {}};
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (outcomes[i].estimate) {
      jobs.rows.push_back(row_of(i, outcomes[i], page_of(i)));
    } else {
      broken.rows.push_back(
          {"job_" + std::to_string(i + 1), {outcomes[i].name, Phrase{outcomes[i].error}}});
    }
  }
  if (!jobs.rows.empty()) report.sections.push_back({"jobs", {std::move(jobs)}});
  if (!broken.rows.empty()) report.sections.push_back({"broken", {std::move(broken)}});
  return report;
}

std::string batch_csv(const std::vector<BatchOutcome>& outcomes) {
  std::string out =
      "job,model,parameters,cluster,gpus,framework,precision,micro_batch,sequence_length,"
      "gradient_accumulation,kind,degrees,verdict,limited_by,gpu_bytes,gpu_upper_bytes,gpu_usable_"
      "bytes,"
      "host_bytes_per_node,nvme_bytes_per_node,memory_source,step_seconds,tokens_per_second,mfu,"
      "time_source,time_error_largest,error\n";
  const Messages english("en");
  for (const BatchOutcome& outcome : outcomes) {
    out += csv_field(outcome.name);
    if (!outcome.estimate) {
      out += fmt::format("{:,>25}{}\n", "", csv_field(outcome.error));
      continue;
    }
    const Plan& plan = outcome.job->plan;
    const Workload& w = plan.workload;
    const Estimate& e = *outcome.estimate;
    const auto number = [](double x, Unit unit) { return to_number({x, unit}); };
    out += fmt::format(
        ",{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},\n",
        csv_field(model_name(outcome.job->model)), e.parameters, csv_field(plan.cluster.label),
        plan.paid_gpus(), csv_field(english.text(framework_words(plan))), plan.precision.name,
        w.micro_batch, w.sequence_length, w.gradient_accumulation, name_of(w.kind),
        degrees_of(plan), name_of(overall(e.verdict)), e.verdict.limited_by, e.device.point,
        e.device.upper, e.usable_bytes, e.host_per_node.total(), e.host_per_node.nvme,
        name_of(Source::modelled), number(e.time.step_seconds, Unit::seconds),
        number(e.time.tokens_per_second, Unit::tokens_per_second),
        number(e.time.mfu, Unit::fraction), name_of(e.time.source),
        e.time.error ? number(std::abs(e.time.error->largest), Unit::fraction) : "");
  }
  return out;
}

}  // namespace shardplan::report
