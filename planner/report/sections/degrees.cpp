#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lowering/pipeline/schedule.h"
#include "parallel/groups.h"
#include "parallel/support.h"
#include "render/estimate_text.h"
#include "report/sections/sections.h"
#include "report/words.h"

namespace shardplan::report {
namespace {

std::int64_t stage_of_rank(const Plan& plan, std::int64_t rank) {
  return rank / (plan.cluster.world() / plan.parallel.pipeline);
}

std::int64_t blocks_on(const Findings& f, std::int64_t stage) {
  const auto chunks = static_cast<std::int64_t>(f.blocks_of_chunks.size());
  std::int64_t sum = 0;
  for (std::int64_t c = stage; c < chunks; c += f.job.plan.parallel.pipeline)
    sum += f.blocks_of_chunks[static_cast<std::size_t>(c)];
  return sum;
}

/// A degree, the group whose ranks differ in it, and how far apart they are.
struct Division {
  std::string_view name;
  std::int64_t ranks;
  Group group;
  std::int64_t stride;
};

std::vector<Division> divisions(const Plan& plan) {
  const Parallel& p = plan.parallel;
  const std::int64_t pieces = p.tensor * p.sequence * p.context;
  const std::array<Division, 6> all{{
      {"tensor", p.tensor, Group::tensor, 1},
      {"sequence", p.sequence, Group::sequence, p.tensor},
      {"context", p.context, Group::context, p.tensor * p.sequence},
      {"data", plan.data_ranks(), Group::data, pieces},
      {"pipeline", p.pipeline, Group::pipeline, plan.cluster.world() / p.pipeline},
      {"expert", p.expert, Group::expert, p.expert_tensor},
  }};
  std::vector<Division> used;
  for (const Division& d : all)
    if (d.ranks > 1) used.push_back(d);
  return used;
}

/// The ranks of rank 0's group: "0–7", "0, 8, … 504".
std::string ranks_of(const Division& d) {
  const std::int64_t last = (d.ranks - 1) * d.stride;
  if (d.stride == 1) return fmt::format("0–{}", last);
  if (d.ranks == 2) return fmt::format("0, {}", d.stride);
  return fmt::format("0, {}, … {}", d.stride, last);
}

std::int64_t nodes_of(const Plan& plan, const Division& d) {
  const std::int64_t node = plan.cluster.gpus_per_node;
  const std::int64_t in_node = std::clamp<std::int64_t>(node / d.stride, 1, d.ranks);
  return (d.ranks + in_node - 1) / in_node;
}

Table degrees_table(const Plan& plan) {
  Table table{"degrees",
              message("table.degrees"),
              {{"degree"},
               {"ranks", true},
               {"divides"},
               {"groups", true},
               {"first_group"},
               {"group_nodes", true}},
              {}};
  for (const Division& d : divisions(plan)) {
    const std::string name(d.name);
    table.rows.push_back(
        {name,
         {message("degree_name." + name), count(d.ranks), message("divides." + name),
          count(plan.cluster.world() / d.ranks), ranks_of(d), count(nodes_of(plan, d))}});
  }
  return table;
}

/// Passes forward whose activations a stage holds at once.
std::int64_t passes_alive(const Plan& plan, std::int64_t stage) {
  const StageSchedule turns = stage_schedule(plan, stage);
  std::int64_t warmup = 0;
  for (const std::int64_t passes : turns.warmup) warmup += passes;
  const std::int64_t all = turns.micro_batches * static_cast<std::int64_t>(turns.warmup.size());
  return std::min(warmup + 1, all);
}

Table stages_table(const Findings& f) {
  const Plan& plan = f.job.plan;
  Table table{"pipeline",
              message("table.pipeline"),
              {{"stages"},
               {"rank", true},
               {"blocks", true},
               {"passes_alive", true},
               {"states", true},
               {"activations", true},
               {"gpu_needed", true},
               {"upper", true}},
              {}};
  for (const Estimate& e : f.ranks) {
    const std::int64_t stage = stage_of_rank(plan, e.rank);
    table.rows.push_back(
        {"stage_" + std::to_string(stage),
         {stages_of(f, e), count(e.rank), count(blocks_on(f, stage)),
          count(passes_alive(plan, stage)), bytes(model_states(e), model_states_source(e)),
          bytes(e.breakdown[index_of(Category::activations)].at_peak, Source::modelled),
          bytes(e.device.point, Source::modelled), bytes(e.device.upper, Source::modelled)},
         {},
         e.rank == f.estimate.rank});
  }
  return table;
}

/// What the fullest stage has more of than the next one, most of all.
Text why_worst(const Findings& f) {
  const Estimate& worst = f.estimate;
  const Estimate* next = nullptr;
  for (const Estimate& e : f.ranks)
    if (e.rank != worst.rank && (next == nullptr || e.device.point > next->device.point)) next = &e;
  const auto stage = [&](const Estimate& e) {
    return Cell(count(stage_of_rank(f.job.plan, e.rank)));
  };
  if (next == nullptr || next->device.point >= worst.device.point)
    return message("degrees.all_alike", {{"stage", stage(worst)}});
  std::size_t most = 0;
  const auto more = [&](std::size_t c) {
    return worst.breakdown[c].at_peak - next->breakdown[c].at_peak;
  };
  for (std::size_t c = 0; c < kCategoryCount; ++c)
    if (more(c) > more(most)) most = c;
  return message(
      "degrees.worst",
      {{"stage", stage(worst)},
       {"rank", count(worst.rank)},
       {"other", stage(*next)},
       {"bytes", bytes(worst.device.point - next->device.point, Source::modelled)},
       {"category", words_of(worst.breakdown[most].category, f.job.plan.cluster.gpu.abilities)},
       {"part", bytes(more(most), Source::modelled)},
       {"passes", count(passes_alive(f.job.plan, stage_of_rank(f.job.plan, worst.rank)))}});
}

Text bubble(const Findings& f) {
  const Parallel& p = f.job.plan.parallel;
  const TimeEstimate& t = f.estimate.time;
  const double share = bubble_share(f.job.plan);
  std::vector<Argument> arguments{
      {"stages", count(p.pipeline)},
      {"micro_batches", count(f.job.plan.workload.gradient_accumulation)},
      {"chunks", count(p.virtual_pipeline)},
      {"share", Quantity{share / (1 + share), Unit::fraction, Source::modelled}}};
  if (t.bubble_seconds <= 0) return message("degrees.bubble", std::move(arguments));
  arguments.push_back({"seconds", seconds(t.bubble_seconds, t.source)});
  return message("degrees.bubble_time", std::move(arguments));
}

}  // namespace

std::string stages_of(const Findings& f, const Estimate& rank) {
  const Plan& plan = f.job.plan;
  const std::int64_t stage = stage_of_rank(plan, rank.rank), last = plan.parallel.pipeline - 1;
  if (stage == 0 || stage == last) return fmt::format("{}", stage);
  // Between the ends, the first with a number of blocks stands for all that have as many.
  std::vector<std::int64_t> alike;
  for (std::int64_t k = stage; k < last; ++k)
    if (blocks_on(f, k) == blocks_on(f, stage)) alike.push_back(k);
  const bool together = alike.back() - alike.front() + 1 == static_cast<std::int64_t>(alike.size());
  if (alike.size() == 1) return fmt::format("{}", stage);
  return together ? fmt::format("{}–{}", alike.front(), alike.back())
                  : fmt::format("{}", fmt::join(alike, ", "));
}

Section degrees_section(const Findings& f) {
  const Plan& plan = f.job.plan;
  Section section{"degrees", {degrees_table(plan)}};
  if (plan.parallel.virtual_pipeline > 1 || plan.parallel.sequence_parallel)
    section.blocks.push_back(Paragraph{message("degrees.all", {{"degrees", degree_words(plan)}})});
  if (plan.parallel.pipeline == 1) return section;
  section.blocks.push_back(Paragraph{bubble(f)});
  section.blocks.push_back(stages_table(f));
  section.blocks.push_back(Paragraph{why_worst(f)});
  return section;
}

}  // namespace shardplan::report
