#include <array>
#include <cmath>

#include "report/sections/sections.h"
#include "report/words.h"
#include "save/estimate.h"

namespace shardplan::report {
namespace {

struct Part {
  const char* id;  ///< of the row, and a palette name
  double TimeEstimate::*seconds;
};
constexpr std::array kParts{
    Part{"compute", &TimeEstimate::compute_seconds},
    Part{"communication", &TimeEstimate::exposed_communication_seconds},
    Part{"copies", &TimeEstimate::exposed_copy_seconds},
    Part{"optimizer", &TimeEstimate::optimizer_seconds},
    Part{"bubble", &TimeEstimate::bubble_seconds},
    Part{"idle", &TimeEstimate::idle_seconds},
};

Text part_words(const Part& part) {
  return message(std::string("time.") + part.id);
}

/// What the whole is: "step", "round" (of generation) or "iteration" (of several models).
std::string whole(const TimeEstimate& t) {
  return t.generation ? "round" : t.phases.empty() ? "step" : "iteration";
}

/// What only generation, or only an iteration, has.
void add_own(Table& table, const TimeEstimate& t) {
  const auto add = [&](const std::string& id, Text name, Quantity value) {
    table.rows.push_back({id, {std::move(name), value, Cell()}});
  };
  const auto rate = [&](double x) { return Quantity{x, Unit::tokens_per_second, t.source}; };
  if (t.generation) {
    const GenerationTime& g = *t.generation;
    add("prefill", message("time.prefill"), seconds(g.prefill_seconds, t.source));
    add("prefill_throughput", message("time.prefill_throughput"),
        rate(g.prefill_tokens_per_second));
    add("decode", message("time.decode"), seconds(g.decode_seconds, t.source));
    add("decode_throughput", message("time.decode_throughput"), rate(g.decode_tokens_per_second));
    add("decode_bound", message("time.decode_bound"),
        rate(g.decode_tokens_per_second * g.decode_seconds / g.decode_speed_of_light));
  }
  for (const TimeEstimate::PhaseTime& phase : t.phases) {
    const std::string id(name_of(phase.phase));
    add("phase_" + id, message("span." + id), seconds(phase.seconds, t.source));
  }
  if (!t.groups) return;
  const GpuGroups& g = *t.groups;
  const auto group = [&](const char* id, Quantity value) {
    add(id, message(std::string("time.") + id), value);
  };
  group("trainer_gpus", count(g.trainer_gpus, Source::exact));
  group("trainer_waits", seconds(g.trainer_waits, t.source));
  group("engine_gpus", count(g.engine_gpus, Source::exact));
  group("engine_answers", seconds(g.answers_seconds, t.source));
  group("engine_waits", seconds(g.engine_waits, t.source));
  group("handover", seconds(g.handover_seconds, t.source));
}

Chart figure(const TimeEstimate& t) {
  Bars bars;
  Bar bar{message("bar." + whole(t)), {}, std::nullopt, seconds(t.step_seconds, t.source)};
  for (const Part& part : kParts) {
    if (t.*part.seconds <= 0) continue;
    bar.parts.emplace_back(part.id, t.*part.seconds);
    bars.legend.emplace_back(part.id, part_words(part));
  }
  bars.bars.push_back(std::move(bar));
  return {"time", message("figure.time_" + whole(t)),
          message("figure.time_description", {{"step", seconds(t.step_seconds, t.source)}}),
          std::move(bars)};
}

}  // namespace

Cell error_cell(const std::optional<StepError>& error) {
  if (!error) return {};
  return Quantity{std::abs(error->largest), Unit::fraction, Source::measured};
}

Table time_table(const TimeEstimate& t, std::int64_t gpus) {
  Table table{
      "time", message("table.time_" + whole(t)), {{"part"}, {"value", true}, {"share", true}}, {}};
  for (const Part& part : kParts) {
    if (t.*part.seconds <= 0) continue;
    table.rows.push_back({part.id,
                          {part_words(part), seconds(t.*part.seconds, t.source),
                           Quantity{t.*part.seconds / t.step_seconds, Unit::fraction, t.source}},
                          part.id});
  }
  const auto add = [&](const char* id, Quantity value) {
    table.rows.push_back({id, {message(std::string("time.") + id), value, Cell()}});
  };
  table.rows.push_back(
      {"step", {message("time." + whole(t)), seconds(t.step_seconds, t.source), Cell()}, {}, true});
  add_own(table, t);
  const char* words = gpus > 1 ? "time.throughput" : "time.throughput_of_one";
  table.rows.push_back(
      {"throughput",
       {message(words), Quantity{t.tokens_per_second, Unit::tokens_per_second, t.source}, Cell()}});
  add("mfu", {t.mfu, Unit::fraction, t.source});
  if (t.hfu > t.mfu) add("hfu", {t.hfu, Unit::fraction, t.source});
  add("speed_of_light", seconds(t.speed_of_light_seconds, t.source));
  if (t.error) {
    add("error_mean", {t.error->mean, Unit::fraction, Source::measured});
    add("error_largest", {std::abs(t.error->largest), Unit::fraction, Source::measured});
  }
  return table;
}

namespace {

/// Where samples have several lengths: the step that the time is of.
void add_typical(Table& table, const TypicalStep& typical) {
  const auto add = [&](const char* id, Quantity value) {
    table.rows.push_back({id, {message(std::string("time.") + id), value, Cell()}});
  };
  add("typical_tokens", count(typical.tokens, Source::modelled));
  add("padding", {1 - typical.counted, Unit::fraction, Source::modelled});
  add("typical_allocated", bytes(typical.allocated, Source::modelled));
}

}  // namespace

namespace {

/// Which of two groups of GPUs the other waits for.
Text decides(const GpuGroups& g) {
  return message(!g.at_once            ? "time.takes_turns"
                 : g.trainer_waits > 0 ? "time.answers_decide"
                                       : "time.training_decides");
}

}  // namespace

Section time_section(const Findings& f) {
  const TimeEstimate& t = f.estimate.time;
  if (t.step_seconds <= 0) return {"time", {Paragraph{message("time.unknown")}}};
  Table table = time_table(t, f.job.plan.cluster.world());
  if (f.estimate.typical) add_typical(table, *f.estimate.typical);
  Section section{"time", {figure(t), std::move(table), Paragraph{message("time.meaning")}}};
  if (t.host_decides()) section.blocks.emplace_back(Paragraph{message("time.host_decides")});
  if (t.groups) section.blocks.emplace_back(Paragraph{decides(*t.groups)});
  return section;
}

}  // namespace shardplan::report
