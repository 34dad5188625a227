#include "render/compare_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/format.h"
#include "lowering/inference/generate.h"
#include "render/describe.h"
#include "render/estimate_text.h"
#include "render/table.h"

namespace shardplan {
namespace {

constexpr std::string_view kCompareLegend =
    "\n"
    "  > is the job as it was asked\n"
    "  GPU       what the fullest GPU needs, as nvidia-smi shows it; bound: its upper bound\n";
constexpr std::string_view kTraining =
    "  states    parameters, gradients, master copies and optimizer states on it\n"
    "  host      memory of each node, and NVMe likewise; FITS (GPU): what a node has is not known\n"
    "  sent      by each GPU to other GPUs in an optimizer step\n"
    "  step      seconds at datasheet rates and assumed efficiencies (docs/explanation/time.md)\n";
constexpr std::string_view kGeneration =
    "  weights   on it; KV cache: at the end, of all sequences\n"
    "  host      memory of each node\n"
    "  prompt    until the first token; tokens/s: after it, of all "
    "(docs/explanation/inference.md)\n";
constexpr std::string_view kServing =
    "  weights   on it; KV cache: what the engine has for all sequences\n"
    "  at once   sequences of all engines; tokens/s: new ones, of all and of each\n"
    "  first     until the first token on an idle engine (docs/explanation/serving.md)\n"
    "  error     of tokens/s: docs/evidence/measurements.md, published throughput\n";
constexpr std::string_view kIteration =
    "  states    parameters, gradients, master copies and optimizer states of all models on it\n"
    "  host      memory of each node\n"
    "  sent      by each GPU to other GPUs in an iteration\n"
    "  iteration generation, scoring and training (docs/explanation/rlhf.md)\n";

/// A column of the table: its head, and what a plan has in it.
struct Column {
  std::string_view head;
  std::function<std::string(const Alternative&)> cell;
};

std::int64_t sent(const Estimate& e, LinkKind link) {
  std::int64_t sum = 0;
  for (const TrafficLine& line : e.traffic)
    if (line.link == link) sum += line.bytes_per_step;
  return sum;
}

/// Short, since the table is wide: "FITS", "TIGHT (GPU)", "NO (host)".
std::string verdict(const Verdict& v) {
  const Fit fit = overall(v);
  if (fit == Fit::fits) return verdict_words(v);
  const std::string_view what = v.limited_by == "gpu"    ? "GPU"
                                : v.limited_by == "nvme" ? "NVMe"
                                                         : v.limited_by;
  return fmt::format("{} ({})", fit == Fit::tight ? "TIGHT" : "NO", what);
}

std::string bytes_or_dash(std::int64_t bytes) {
  return bytes == 0 ? "-" : format_bytes(bytes);
}

std::string time_or_dash(double seconds) {
  return seconds > 0 ? format_seconds(seconds) : "-";
}

Column bytes_column(std::string_view head, std::int64_t (*bytes)(const Estimate&)) {
  return {head, [bytes](const Alternative& a) { return bytes_or_dash(bytes(a.estimate)); }};
}

/// Of a job that an engine serves.
std::vector<Column> serving_columns() {
  const auto known = [](const Alternative& a, auto text) {
    const ServingEstimate& s = *a.estimate.serving;
    return s.token_seconds > 0 ? text(s) : std::string("-");
  };
  return {bytes_column("GPU", [](const Estimate& e) { return e.device.point; }),
          bytes_column("bound", [](const Estimate& e) { return e.device.upper; }),
          bytes_column("weights", model_states),
          bytes_column("KV cache", [](const Estimate& e) { return e.serving->memory.cache; }),
          {"at once",
           [](const Alternative& a) {
             const ServingEstimate& s = *a.estimate.serving;
             return format_count(s.sequences * s.replicas);
           }},
          {"tokens/s",
           [known](const Alternative& a) {
             return known(a, [](const ServingEstimate& s) {
               return format_count(std::llround(s.tokens_per_second));
             });
           }},
          {"of each",
           [known](const Alternative& a) {
             return known(a, [](const ServingEstimate& s) {
               return fmt::format("{:.3g}", 1 / s.token_seconds);
             });
           }},
          {"first", [known](const Alternative& a) {
             return known(
                 a, [](const ServingEstimate& s) { return format_seconds(s.first_token_seconds); });
           }}};
}

std::vector<Column> columns_of(const Job& job) {
  if (job.plan.workload.generation.engine) return serving_columns();
  const bool inference = job.plan.workload.kind == WorkKind::inference;
  std::vector<Column> columns{
      bytes_column("GPU", [](const Estimate& e) { return e.device.point; }),
      bytes_column("bound", [](const Estimate& e) { return e.device.upper; }),
      bytes_column(inference ? "weights" : "states", model_states)};
  const Column host =
      bytes_column("host", [](const Estimate& e) { return e.host_per_node.total(); });
  if (inference) {
    columns.push_back({"KV cache", [&job](const Alternative& a) {
                         return bytes_or_dash(full_cache_bytes(job.model, a.plan));
                       }});
    columns.push_back(host);
    columns.push_back({"prompt", [](const Alternative& a) {
                         const auto& g = a.estimate.time.generation;
                         return time_or_dash(g ? g->prefill_seconds : 0);
                       }});
    columns.push_back({"tokens/s", [](const Alternative& a) {
                         const auto& g = a.estimate.time.generation;
                         return g ? fmt::format("{:.4g}", g->decode_tokens_per_second)
                                  : std::string("-");
                       }});
    return columns;
  }
  columns.push_back(host);
  if (!job.rlhf)
    columns.push_back(bytes_column("NVMe", [](const Estimate& e) { return e.host_per_node.nvme; }));
  columns.push_back(bytes_column("sent", [](const Estimate& e) { return sent(e, LinkKind::gpu); }));
  columns.push_back({job.rlhf ? "iteration" : "step", [](const Alternative& a) {
                       return time_or_dash(a.estimate.time.step_seconds);
                     }});
  return columns;
}

std::string_view legend_of(const Job& job) {
  if (job.rlhf) return kIteration;
  if (job.plan.workload.generation.engine) return kServing;
  return job.plan.workload.kind == WorkKind::inference ? kGeneration : kTraining;
}

/// One line for each kind of step that the table has a time of; of an engine the legend says it.
std::string error_lines(const std::vector<Alternative>& alternatives) {
  std::vector<const Estimate*> estimates;
  for (const Alternative& a : alternatives) estimates.push_back(&a.estimate);
  std::string text;
  for (const std::string& error : step_error_texts(estimates))
    text += wrapped(error, text.empty() ? "  error     " : "            ", "            ");
  return text;
}

}  // namespace

std::string compare_text(const Job& job, const std::vector<Alternative>& alternatives) {
  const std::vector<Column> columns = columns_of(job);
  std::vector<Align> aligned{Align::left, Align::left};
  std::vector<std::string> heads{"", ""};
  for (const Column& column : columns) {
    aligned.push_back(Align::right);
    heads.emplace_back(column.head);
  }
  TextTable table(aligned);
  table.add(heads);
  for (const Alternative& a : alternatives) {
    std::vector<std::string> row{(a.is_current ? "> " : "  ") + a.name,
                                 verdict(a.estimate.verdict)};
    for (const Column& column : columns) row.push_back(column.cell(a));
    table.add(row);
  }
  return subject(job) + "\n" + table.text("") + std::string(kCompareLegend) +
         std::string(legend_of(job)) + error_lines(alternatives);
}

}  // namespace shardplan
