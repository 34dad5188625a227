#include "models/job_words.h"

#include <cmath>

#include "base/format.h"
#include "frameworks/registry.h"
#include "models/core_words.h"
#include "models/estimate_models.h"
#include "models/serving_words.h"
#include "models/text.h"
#include "optimizers/description.h"
#include "parallel/support.h"
#include "render/cost_text.h"
#include "render/describe.h"
#include "report/plan_words.h"
#include "report/words.h"

namespace shardplan::gui {
namespace {

QString model_of(const Model& model) {
  return text(report::model_name(model));
}

QString count(double number) {
  return text(format_count(static_cast<std::int64_t>(number)));
}

/// Tokens/s: small numbers keep their digits.
QString pace(double per_second) {
  constexpr double kThousand = 1000;
  return per_second < kThousand ? QString::number(per_second, 'g', 4)
                                : text(format_count(std::llround(per_second)));
}

}  // namespace

QString JobWords::subject(const Answer& a) {
  const QString model =
      tr("%1 (%2 parameters)")
          .arg(model_of(a.job->model), text(format_parameters(a.job->model.parameter_count())));
  const QString cluster = words(report::cluster_words(a.job->plan.cluster));
  if (!a.job->rlhf) return tr("%1 on %2").arg(model, cluster);
  const QString algorithm = text(std::string(name_of(a.job->rlhf->algorithm))).toUpper();
  return tr("%1 of %2 on %3").arg(algorithm, model, cluster);
}

QString JobWords::method(const Answer& a) {
  QStringList lines;
  for (const report::Cell& line : report::plan_words(*a.job)) lines.push_back(cell_words(line));
  return lines.join(QLatin1Char('\n'));
}

QString JobWords::cost(const Answer& a) {
  const Cost cost = cost_of(a.job->plan, a.estimate->time.step_seconds, {});
  const auto& amount = cost.per_billion_tokens.on_demand;
  if (amount && cost.list)
    return tr("; $%1 per billion tokens at the list price of %2 (%3)")
        .arg(text(money(*amount)), text(cost.list->machine), text(cost.list->as_of));
  return amount ? tr("; %1 per billion tokens").arg(text(money(*amount)))
                : tr("; cost: the price of a node is not known");
}

QString JobWords::generation_rates(const TimeEstimate& t) {
  const GenerationTime& g = *t.generation;
  const double most = g.decode_tokens_per_second * g.decode_seconds / g.decode_speed_of_light;
  return tr("prompt: about %1, %2 tokens/s; new tokens: about %3, %4 tokens/s, at most %5 at "
            "datasheet rates")
      .arg(text(format_seconds(g.prefill_seconds)), count(g.prefill_tokens_per_second),
           text(format_seconds(g.decode_seconds)), pace(g.decode_tokens_per_second), pace(most));
}

QString JobWords::error(const TimeEstimate& t) {
  if (!t.error) return tr("; how far off is not known");
  return tr("; such steps were off by %1 % in the mean, %2 % at most")
      .arg(QString::number(100 * t.error->mean, 'f', 0),
           QString::number(100 * std::abs(t.error->largest), 'f', 0));
}

QString JobWords::rates(const Answer& a) {
  const TimeEstimate& t = a.estimate->time;
  if (a.estimate->serving) return ServingWords::rates(a);
  if (t.step_seconds <= 0) return tr("not estimated: the GPU's rates are not known");
  if (t.generation) return generation_rates(t) + error(t) + cost(a);
  if (t.phases.empty())
    return tr("about %1 per step, %2 tokens/s in all, %3 % of the dense peak")
               .arg(text(format_seconds(t.step_seconds)), count(t.tokens_per_second),
                    QString::number(100 * t.mfu, 'f', 0)) +
           error(t) + cost(a);
  QStringList parts;
  for (const TimeEstimate::PhaseTime& phase : t.phases)
    parts.push_back(QStringLiteral("%1 %2").arg(EstimateModels::phase_name(phase.phase),
                                                text(format_seconds(phase.seconds))));
  return tr("about %1 per iteration (%2), %3 tokens/s in all, %4 % of the dense peak")
             .arg(text(format_seconds(t.step_seconds)), parts.join(QStringLiteral(", ")),
                  count(t.tokens_per_second), QString::number(100 * t.mfu, 'f', 0)) +
         error(t) + cost(a);
}

QString JobWords::memory_title(const Answer& a) {
  if (a.estimate->serving) return tr("Memory of each GPU");
  return a.job->plan.workload.kind == WorkKind::inference
             ? tr("Memory of each GPU at its peak, and live tensors over time")
             : tr("Memory of each GPU at its peak, and live tensors through the step");
}

QString JobWords::time_title(const Answer& a) {
  if (a.estimate->serving) return tr("Time of one pass");
  if (a.job->rlhf) return tr("Time per iteration");
  return a.job->plan.workload.kind == WorkKind::inference ? tr("Time of prompts and new tokens")
                                                          : tr("Time per step");
}

}  // namespace shardplan::gui
