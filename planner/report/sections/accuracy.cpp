#include <fmt/format.h>

#include <array>
#include <cmath>

#include "report/sections/sections.h"
#include "report/words.h"

namespace shardplan::report {
namespace {

constexpr std::array kShown{Figure::allocated_peak, Figure::reserved, Figure::device,
                            Figure::step_seconds};

Quantity percent(double x) {
  return {std::abs(x), Unit::fraction, Source::measured};
}

Text similarity_words(const SimilarRecords& like, const Plan& plan) {
  constexpr std::array kKeys{"like.framework_gpus_precision", "like.framework_precision",
                             "like.framework", "like.any"};
  return message(kKeys[static_cast<std::size_t>(like.similarity)],
                 {{"framework", framework_group(plan)},
                  {"gpus", count(plan.cluster.world())},
                  {"precision", plan.precision.name}});
}

}  // namespace

Section accuracy_section(const Findings& f) {
  const SimilarRecords& like = f.like;
  const WorkKind kind = f.job.plan.workload.kind;
  if (kind != WorkKind::train) {
    const char* page =
        kind == WorkKind::inference ? "docs/explanation/inference.md" : "docs/explanation/rlhf.md";
    return {"accuracy", {Paragraph{message("accuracy.other_kind", {{"page", page}})}}};
  }
  if (like.errors.records == 0) return {"accuracy", {Paragraph{message("accuracy.none")}}};
  const ErrorSummary& device = like.errors.figures[index_of(Figure::device)];
  Section section{"accuracy", {}};
  section.blocks.push_back(
      Paragraph{message("accuracy.statement", {{"records", count(device.count, Source::measured)},
                                               {"like", similarity_words(like, f.job.plan)},
                                               {"largest", percent(device.largest)},
                                               {"mean", percent(device.mean_absolute)}})});
  Table table{"accuracy",
              message("table.accuracy"),
              {{"figure"}, {"runs", true}, {"mean_error", true}, {"largest_error", true}},
              {}};
  for (const auto figure : kShown) {
    const ErrorSummary& s = like.errors.figures[index_of(figure)];
    if (s.count == 0) continue;
    const std::string id(kFigureNames[index_of(figure)]);
    table.rows.push_back({id,
                          {message("figure_name." + id), count(s.count, Source::measured),
                           percent(s.mean_absolute), percent(s.largest)}});
  }
  section.blocks.push_back(std::move(table));
  section.blocks.push_back(Paragraph{
      message("accuracy.runs", {{"gpus", fmt::format("{}", fmt::join(like.gpus, ", "))},
                                {"held_out", count(like.held_out, Source::measured)},
                                {"records", count(like.errors.records, Source::measured)}})});
  if (like.same_gpu == 0)
    section.blocks.push_back(
        Paragraph{message("accuracy.other_gpu", {{"gpu", f.job.plan.cluster.gpu.name}})});
  return section;
}

}  // namespace shardplan::report
