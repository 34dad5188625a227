#include "render/search_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "render/cost_text.h"
#include "render/describe.h"
#include "render/estimate_text.h"
#include "render/fixes_text.h"
#include "render/foundation.h"
#include "render/table.h"

namespace shardplan {
namespace {

/// Where nobody knows whether a host has room for what the best plan keeps there.
std::string_view as_far_as_known(const Estimate& best) {
  return best.verdict.host.fit == Fit::unknown ? ", if each host has room for what it keeps there"
                                               : "";
}

std::string_view aim(Objective objective) {
  switch (objective) {
    case Objective::throughput:
      return "fastest plan that fits";
    case Objective::cost:
      return "cheapest plan that fits";
    case Objective::gpus:
      return "plan on the fewest GPUs";
    case Objective::memory:
      return "plan with the smallest memory";
  }
  return "";
}

const std::string& value_of(const SearchSpace& space, const Choice& choice, std::size_t axis) {
  return space.axes[axis].values[choice[axis]];
}

/// "ZeRO-2: does not fit, 93.1 GiB", "8: 4 % slower, saves 1.2 GiB"
std::string consequence(const SearchSpace& space, const OtherChoice& other) {
  const Estimate& e = other.estimate;
  std::string text = space.axes[other.axis].values[other.value] + ": ";
  if (!e.verdict.fits) {
    const std::int64_t needed = e.verdict.limited_by == "host"   ? e.verdict.host.needed
                                : e.verdict.limited_by == "nvme" ? e.verdict.nvme.needed
                                                                 : e.device.upper;
    return text +
           fmt::format("{}, {} {}", overall(e.verdict) == Fit::tight ? "tight" : "does not fit",
                       e.verdict.limited_by == "gpu" ? "upper bound" : "needs",
                       format_bytes(needed)) +
           (e.verdict.limited_by == "gpu" ? "" : fmt::format(" of {}", e.verdict.limited_by));
  }
  const double percent = 100 * (other.slowdown - 1);
  if (other.slowdown <= 0 || std::abs(percent) < 1) {
    text += "about as fast";
  } else if (percent >= 100) {
    text += fmt::format("{:.2g}× the time", other.slowdown);
  } else {
    text += fmt::format("{:.2g} % {}", std::abs(percent), percent > 0 ? "slower" : "faster");
  }
  const std::int64_t bytes = other.gpu_added;
  return text + fmt::format(", {} {}", format_bytes(std::abs(bytes)), bytes < 0 ? "less" : "more");
}

std::string reasons(const SearchAnswer& a) {
  const Found& best = a.result.front.front();
  TextTable table({Align::left, Align::left, Align::left});
  for (std::size_t axis = 0; axis < a.space.axes.size(); ++axis) {
    std::vector<std::string> parts;
    for (const OtherChoice& other : a.others)
      if (other.axis == axis) parts.push_back(consequence(a.space, other));
    if (!parts.empty())
      table.add({axis_words(a.space.axes[axis].name), value_of(a.space, best.choice, axis),
                 fmt::format("{}", fmt::join(parts, "; "))});
  }
  const std::string text = table.text();
  return text.empty() ? "" : "\nWhy, choice by choice: what a neighbouring value does\n" + text;
}

/// The axes that differ on the front: the others would be columns of one value.
std::vector<std::size_t> telling_axes(const SearchAnswer& a) {
  std::vector<std::size_t> axes;
  for (std::size_t axis = 0; axis < a.space.axes.size(); ++axis) {
    const bool differs = std::any_of(
        a.result.front.begin(), a.result.front.end(),
        [&](const Found& f) { return f.choice[axis] != a.result.front.front().choice[axis]; });
    if (differs) axes.push_back(axis);
  }
  return axes;
}

/// Of steps of other kinds than the best plan's, whose error is told with its time.
std::string other_errors(const SearchAnswer& a, std::size_t rows) {
  std::vector<const Estimate*> shown;
  for (std::size_t i = 0; i < std::min(rows, a.result.front.size()); ++i)
    shown.push_back(&a.result.front[i].estimate);
  std::string text;
  const std::vector<std::string> told = step_error_texts(shown);
  for (std::size_t i = 1; i < told.size(); ++i)
    text += wrapped("error of such times: " + told[i], "  ", "  ");
  return text;
}

std::string front_table(const SearchAnswer& a, std::size_t rows) {
  const std::vector<std::size_t> axes = telling_axes(a);
  std::vector<std::string> head{""};
  std::vector<Align> columns{Align::right};
  for (const std::size_t axis : axes) {
    head.push_back(axis_head(a.space.axes[axis].name));
    columns.push_back(Align::left);
  }
  for (const char* name : {"tokens/s", "step", "GPU", "bound", "host", "GPU-h/1e9"}) {
    head.emplace_back(name);
    columns.push_back(Align::right);
  }
  TextTable table(columns);
  table.add(head);
  for (std::size_t i = 0; i < std::min(rows, a.result.front.size()); ++i) {
    const Found& f = a.result.front[i];
    const Estimate& e = f.estimate;
    std::vector<std::string> row{fmt::format("{}", i + 1)};
    for (const std::size_t axis : axes) row.push_back(value_of(a.space, f.choice, axis));
    const bool timed = e.time.step_seconds > 0;
    row.push_back(timed ? format_count(static_cast<std::int64_t>(e.time.tokens_per_second)) : "-");
    row.push_back(timed ? format_seconds(e.time.step_seconds) : "-");
    row.push_back(format_bytes(e.device.point));
    row.push_back(format_bytes(e.device.upper));
    row.push_back(e.host_per_node.total() > 0 ? format_bytes(e.host_per_node.total()) : "-");
    const Cost cost = cost_of(f.plan, e.time.step_seconds, a.goal.terms);
    row.push_back(timed ? fmt::format("{:.4g}", cost.gpu_hours_per_billion_tokens) : "-");
    table.add(std::move(row));
  }
  std::string text = table.text() + other_errors(a, rows);
  if (a.result.front.size() > rows)
    text += fmt::format("  and {} more: --rows shows them, --format json has them all\n",
                        a.result.front.size() - rows);
  return text;
}

std::string count_table(const SearchAnswer& a) {
  TextTable table({Align::right, Align::left});
  for (const RuleCount& rule : a.result.ruled_out)
    table.add({format_count(rule.count), rule.sentence});
  table.add({format_count(static_cast<std::int64_t>(a.result.front.size())), "on the front"});
  table.add({format_count(a.result.candidates),
             fmt::format("in all; {} estimated in full, {} with the allocator simulated",
                         format_count(a.result.estimated), format_count(a.result.simulated))});
  return table.text();
}

/// A pipeline is full with many micro-batches, of which a step has one unless somebody says more.
std::string batch_hint(const SearchAnswer& a) {
  const Plan& base = a.space.base;
  for (const Axis& axis : a.space.axes) {
    if (axis.name == "accumulation" && axis.values.front() == "from the global batch") return "";
    if (axis.name == "accumulation" && axis.values.size() > 1) return "";
  }
  for (const Axis& axis : a.space.axes)
    if (axis.name == "pipeline" && axis.values.size() > 1)
      return fmt::format(
          "\nEvery plan was given {} micro-batch(es) per step, which leaves pipeline stages "
          "waiting: "
          "--global-batch\nsays how many samples a step has, and --accumulations how many "
          "micro-batches\n",
          base.workload.gradient_accumulation);
  return "";
}

std::string found_text(const SearchAnswer& a, std::size_t rows) {
  const Found& best = a.result.front.front();
  const Job job = job_with(a.job, best.plan);
  std::string text = fmt::format(
      "The {}{}, of {}{}\n{}\n", aim(a.goal.objective), as_far_as_known(best.estimate),
      format_count(a.result.candidates),
      a.result.interrupted ? "; interrupted, so a better one may be left" : "", subject(job));
  text += resource_lines(best.estimate) + "\n" +
          time_lines(best.estimate, best.plan.cluster.world()) +
          cost_lines(cost_of(job.model, best.plan, best.estimate, a.goal.terms), best.plan.cluster);
  text += reasons(a);
  text += fmt::format("\nPlans that no other beats in time, memory and GPUs at once: {}\n",
                      a.result.front.size());
  text += front_table(a, rows);
  text += batch_hint(a) + "\nWhat became of every candidate\n" + count_table(a);
  return text + "\nWhat this rests on\n" + foundation(best.estimate, job, a.calibration);
}

std::string near_miss_text(const SearchAnswer& a, const NearMiss& miss) {
  std::string text = "\nThe one that comes closest\n" + subject(job_with(a.job, miss.plan.plan)) +
                     "\n" + resource_lines(miss.plan.estimate);
  if (!miss.fixes.empty()) text += "\nWhat would change its verdict\n" + fix_lines(miss.fixes);
  if (miss.enough_gpus)
    text += fmt::format("\n{} GPUs of this kind would be enough for it\n",
                        format_count(*miss.enough_gpus));
  text +=
      "\n`shardplan fit` of this job names changes that this search does not try, such as LoRA\n";
  return text;
}

std::string nothing_text(const SearchAnswer& a) {
  std::string text =
      fmt::format("{} of {} plans\n\nWhat ruled them out\n",
                  a.result.interrupted ? "Interrupted before any was found to fit" : "Nothing fits",
                  format_count(a.result.candidates));
  text += count_table(a);
  if (a.result.beyond_limits) {
    const Found& f = *a.result.beyond_limits;
    text += "\nThe best plan without limits of time and cost\n" + subject(job_with(a.job, f.plan)) +
            "\n" + resource_lines(f.estimate) + "\n" +
            time_lines(f.estimate, f.plan.cluster.world()) +
            cost_lines(cost_of(a.job.model, f.plan, f.estimate, a.goal.terms), f.plan.cluster);
  }
  if (a.result.near_miss) text += near_miss_text(a, *a.result.near_miss);
  return text;
}

}  // namespace

std::string axis_words(std::string_view name) {
  if (name == "gpus") return "GPUs";
  if (name == "micro_batch") return "micro-batch";
  if (name == "ulysses") return "Ulysses";
  if (name == "balance") return "stage balance";
  std::string text(name);
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

std::string axis_head(std::string_view name) {
  if (name == "optimizer_offload") return "optimizer";
  if (name == "parameter_offload") return "parameters";
  if (name == "checkpointing") return "recompute";
  if (name == "mlp_tiles") return "tiles";
  if (name == "sequence_parallel") return "tokens";
  if (name == "virtual_pipeline") return "chunks";
  if (name == "balance") return "balance";
  if (name == "expert_tensor") return "each expert";
  if (name == "reduce_bucket_size") return "bucket";
  if (name == "stage3_prefetch_bucket_size") return "prefetch";
  if (name == "stage3_param_persistence_threshold") return "persist";
  return axis_words(name);
}

Job job_with(const Job& job, const Plan& plan) {
  Job changed = job;
  changed.plan = plan;
  std::erase_if(changed.assumed, [](const std::string& what) {  // chosen now
    return what.rfind("framework: ", 0) == 0 || what.rfind("micro-batch: ", 0) == 0;
  });
  return changed;
}

std::string search_text(const SearchAnswer& answer, std::size_t rows) {
  return answer.result.front.empty() ? nothing_text(answer) : found_text(answer, rows);
}

}  // namespace shardplan
