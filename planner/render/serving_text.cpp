#include "render/serving_text.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "render/describe.h"
#include "render/estimate_text.h"
#include "render/fixes_text.h"
#include "render/foundation.h"
#include "render/optional_json.h"
#include "render/table.h"
#include "save/estimate.h"

namespace shardplan {
namespace {

std::string whole(double value) {
  return format_count(std::llround(value));
}

/// Tokens/s of one sequence: small numbers keep a digit.
std::string rate(double per_second) {
  return per_second < 100 ? fmt::format("{:.3g}", per_second) : whole(per_second);
}

std::string limit_words(const ServingEstimate& s, const Plan& plan) {
  if (s.limited_by == "max_num_seqs")
    return fmt::format("max_num_seqs; the cache has room for {}",
                       whole(static_cast<double>(s.room)));
  if (s.limited_by == "batch")
    return fmt::format("as asked; the cache has room for {}", whole(static_cast<double>(s.room)));
  return fmt::format(
      "as many sequences of {} tokens as the cache has room for",
      format_count(plan.workload.sequence_length + plan.workload.generation.new_tokens));
}

/// The share of the GPU with which one sequence would have room.
std::string share_words(const Estimate& e, const Plan& plan) {
  const RolloutEngine& engine = *plan.workload.generation.engine;
  const double least = least_utilization(engine, e.serving->memory, plan);
  if (least > 1)
    return fmt::format("one sequence wants {} blocks: a whole GPU is too small for it and weights",
                       format_count(e.serving->memory.blocks_needed));
  return fmt::format("one sequence wants {} blocks: it has room from {} {:.2f} on, not with {:.2f}",
                     format_count(e.serving->memory.blocks_needed), engine.engine->share_key, least,
                     engine.utilization);
}

std::string room_lines(const Estimate& e, const Plan& plan) {
  const ServingEstimate& s = *e.serving;
  const std::string cache = fmt::format(
      "cache of {} on each GPU: {} blocks of {} tokens, {} per token", format_bytes(s.memory.cache),
      format_count(s.memory.blocks), plan.workload.generation.engine->block_tokens,
      format_bytes(s.memory.block_bytes / plan.workload.generation.engine->block_tokens));
  std::string text = fmt::format("\nSequences at once\n  {} per engine: {}\n",
                                 format_count(s.sequences), limit_words(s, plan));
  text += wrapped(cache, "  ", "  ");
  if (s.room == 0) text += wrapped(share_words(e, plan), "  ", "  ");
  if (s.replicas > 1) text += fmt::format("  {} engines side by side\n", format_count(s.replicas));
  return text;
}

std::string speed_lines(const Estimate& e) {
  const ServingEstimate& s = *e.serving;
  if (s.token_seconds <= 0)
    return s.sequences > 0 ? "  not estimated: the GPU's rates are not known\n" : "  none\n";
  std::string text =
      fmt::format("  {} tokens/s in all, {} to each sequence, {:.3g} requests per second\n",
                  whole(s.tokens_per_second), rate(1 / s.token_seconds), s.requests_per_second);
  text +=
      fmt::format("  first token after about {} on an idle engine, {} on a full one\n",
                  format_seconds(s.first_token_seconds), format_seconds(s.loaded_first_seconds));
  const EnginePassTime& p = s.pass;
  const std::string parts = fmt::format(
      "a pass takes {}: {} of it matrix products, {} attention, {} other kernels{}, {} between "
      "passes; it takes {} tokens of prompts along",
      format_seconds(p.seconds()), format_seconds(p.products), format_seconds(p.attention),
      format_seconds(p.between),
      p.exchanges > 0 ? fmt::format(", {} exchanges among GPUs", format_seconds(p.exchanges)) : "",
      format_seconds(p.host), whole(s.prompt_tokens));
  return text + wrapped(parts, "  ", "  ");
}

std::string choice_table(const std::vector<ServingChoice>& all) {
  TextTable table({Align::left, Align::right, Align::right, Align::left, Align::right, Align::right,
                   Align::right, Align::right, Align::right});
  table.add({"", "GPUs per engine", "engines", "", "sequences", "tokens/s each", "tokens/s in all",
             "first token", "$ per million"});
  for (const ServingChoice& c : all) {
    const ServingEstimate& s = *c.estimate.serving;
    const bool known = s.token_seconds > 0;
    table.add({c.asked ? ">" : "", format_count(c.tensor_parallel), format_count(s.replicas),
               verdict_word(c.estimate.verdict.gpu.fit), format_count(s.sequences * s.replicas),
               known ? rate(1 / s.token_seconds) : "-", known ? whole(s.tokens_per_second) : "-",
               known ? format_seconds(s.first_token_seconds) : "-",
               c.dollars_per_million ? fmt::format("{:.2f}", *c.dollars_per_million) : "-"});
  }
  return table.text();
}

}  // namespace

std::string serving_text(const Estimate& e, const Job& job, const std::vector<ServingChoice>& all,
                         const std::vector<Fix>& fixes, const Calibration& calibration) {
  std::string text = headline(e, job) + "\n" + resource_lines(e);
  text += "\nWhat fills each GPU\n" + breakdown_bars(e, job.plan.cluster.gpu.abilities);
  text += room_lines(e, job.plan) + "\nSpeed with so many\n" + speed_lines(e);
  if (all.size() > 1) text += "\nShared out otherwise\n" + choice_table(all);
  if (!fixes.empty())
    text += (e.verdict.fits ? "\nTo make more room\n" : "\nWhat would change the verdict\n") +
            fix_lines(fixes);
  text += "\nWhat this rests on\n" + foundation(e, job, calibration);
  return text;
}

std::string serving_search_text(const Job& job, const std::vector<ServingChoice>& found,
                                const ServingGoal& goal) {
  const std::string_view first = goal.objective == Objective::cost         ? "The cheapest"
                                 : goal.objective == Objective::throughput ? "The fastest"
                                 : goal.objective == Objective::gpus       ? "The smallest"
                                                                           : "The lightest";
  if (found.empty()) return subject(job) + "\nNo engine keeps to what was asked\n";
  const ServingChoice& best = found.front();
  const std::string text =
      fmt::format("{}\n{}: {} engine{} of {} GPU{} each\n\n", subject(job), first,
                  format_count(best.estimate.serving->replicas),
                  best.estimate.serving->replicas == 1 ? "" : "s",
                  format_count(best.tensor_parallel), best.tensor_parallel == 1 ? "" : "s");
  return text + choice_table(found) +
         "\n  sequences and tokens/s in all are of all engines; $ are of new tokens, on demand\n"
         "  error of tokens/s: docs/evidence/measurements.md, published throughput\n";
}

Json serving_json(const std::vector<ServingChoice>& all) {
  Json list = Json::array();
  for (const ServingChoice& c : all) {
    Json one = to_json(*c.estimate.serving);
    one["tensor_parallel"] = c.tensor_parallel;
    one["fits"] = c.estimate.verdict.fits;
    one["dollars_per_million_tokens"] = maybe(c.dollars_per_million);
    list.push_back(std::move(one));
  }
  return list;
}

}  // namespace shardplan
