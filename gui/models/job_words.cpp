#include "models/job_words.h"

#include "base/format.h"
#include "frameworks/registry.h"
#include "models/core_words.h"
#include "models/estimate_models.h"
#include "models/text.h"
#include "optimizers/description.h"
#include "parallel/support.h"
#include "render/cost_text.h"
#include "render/describe.h"
#include "report/words.h"

namespace shardplan::gui {
namespace {

QString model_of(const Model& model) {
  return text(report::model_name(model));
}

QString count(double number) {
  return text(format_count(static_cast<std::int64_t>(number)));
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
  const Plan& plan = a.job->plan;
  if (a.job->rlhf) return models(*a.job->rlhf);
  return plan.workload.kind == WorkKind::inference ? generation(plan) : training(plan);
}

/// ", tensor 8 × pipeline 16 × data 128", or nothing where only samples are divided.
QString JobWords::degrees(const Plan& plan) {
  const QString out = cell_words(report::degree_words(plan));
  return out.isEmpty() ? out : QStringLiteral(", ") + out;
}

QString JobWords::training(const Plan& p) {
  const Workload& w = p.workload;
  const QString how = w.lora ? tr("LoRA of rank %1").arg(w.lora->rank) : tr("full fine-tuning");
  QString out = tr("%1 with %2, %3, %4; micro-batch %5 × %6 tokens")
                    .arg(how, words(report::framework_words(p.framework)), text(p.precision.name),
                         text(p.optimizer.kind->words), text(format_count(w.micro_batch)),
                         text(format_count(w.sequence_length)));
  if (w.gradient_accumulation > 1)
    out += tr(", %1 accumulation steps").arg(text(format_count(w.gradient_accumulation)));
  out += degrees(p);
  out += p.checkpointing == Checkpointing::full        ? tr(", every block checkpointed")
         : p.checkpointing == Checkpointing::selective ? tr(", selective checkpointing")
                                                       : tr(", no activation checkpointing");
  return out +
         (p.attention == AttentionKind::eager ? tr(", eager attention") : tr(", fused attention"));
}

QString JobWords::quantization(Quantization format) {
  if (format == Quantization::none) return {};
  return tr(", %1").arg(words(format_of(format).words));
}

QString JobWords::generation(const Plan& p) {
  const Workload& w = p.workload;
  const Generation& g = w.generation;
  QString out = g.injection ? tr("inference with DeepSpeed-Inference's kernels over %1 GPUs")
                                  .arg(g.injection->tensor_parallel)
                : zero_options(p) != nullptr
                    ? tr("ZeRO-Inference, %1").arg(words(report::framework_words(p.framework)))
                    : tr("inference with transformers");
  out += QStringLiteral(", ") + text(std::string(name_of(p.precision.params)));
  out += quantization(g.weights);
  if (g.fp8_cache) out += tr(", fp8 KV cache");
  out += p.attention == AttentionKind::eager ? tr(", eager attention") : tr(", fused attention");
  return out + tr("; %1 × (%2 tokens of prompt + %3 new)")
                   .arg(text(format_count(w.micro_batch)), text(format_count(w.sequence_length)),
                        text(format_count(g.new_tokens)));
}

/// A line a model, and the batch.
QString JobWords::models(const Rlhf& rlhf) {
  QStringList lines;
  for (const Role& role : rlhf.roles) {
    const QString name = words(report::words_of(role.kind));
    const QString use = !role.trains              ? tr("frozen")
                        : role.plan.workload.lora ? QStringLiteral("LoRA")
                                                  : tr("trained");
    lines.push_back(tr("%1: %2, %3 with %4, %5")
                        .arg(name, model_of(role.model), use,
                             words(report::framework_words(role.plan.framework)),
                             text(role.plan.precision.name)));
    if (role.idle_on_host) lines.back() += tr(", on the host while idle");
  }
  const Workload& w = rlhf.roles.front().plan.workload;
  QString batch =
      tr("micro-batch %1 × %2 tokens")
          .arg(text(format_count(w.micro_batch)), text(format_count(w.sequence_length)));
  if (generates(rlhf.algorithm)) {
    const Workload& g = rlhf.generation.workload;
    batch +=
        tr(", %1 of them generated, %2 sequences at once")
            .arg(text(format_count(g.generation.new_tokens)), text(format_count(g.micro_batch)));
    if (rlhf.hybrid) batch += tr(", hybrid engine");
  }
  lines.push_back(batch);
  return lines.join(QLatin1Char('\n'));
}

QString JobWords::cost(const Answer& a) {
  const Cost cost = cost_of(a.job->plan, *a.estimate, {});
  return cost.money_per_billion_tokens
             ? tr("; %1 for a billion tokens").arg(text(money(*cost.money_per_billion_tokens)))
             : tr("; cost: the price of a node is not known");
}

QString JobWords::generation_rates(const TimeEstimate& t) {
  const GenerationTime& g = *t.generation;
  const double most = g.decode_tokens_per_second * g.decode_seconds / g.decode_speed_of_light;
  return tr("prompt: about %1, %2 tokens/s; new tokens: about %3, %4 tokens/s, at most %5 at "
            "datasheet rates")
      .arg(text(format_seconds(g.prefill_seconds)), count(g.prefill_tokens_per_second),
           text(format_seconds(g.decode_seconds)),
           QString::number(g.decode_tokens_per_second, 'g', 4), QString::number(most, 'g', 4));
}

QString JobWords::rates(const Answer& a) {
  const TimeEstimate& t = a.estimate->time;
  if (t.step_seconds <= 0) return tr("not estimated: the GPU's rates are not known");
  if (t.generation) return generation_rates(t) + cost(a);
  if (t.phases.empty())
    return tr("about %1 per step, %2 tokens/s on all GPUs, %3 % of their dense peak")
               .arg(text(format_seconds(t.step_seconds)), count(t.tokens_per_second),
                    QString::number(100 * t.mfu, 'f', 0)) +
           cost(a);
  QStringList parts;
  for (const TimeEstimate::PhaseTime& phase : t.phases)
    parts.push_back(QStringLiteral("%1 %2").arg(EstimateModels::phase_name(phase.phase),
                                                text(format_seconds(phase.seconds))));
  return tr("about %1 an iteration (%2), %3 tokens/s on all GPUs, %4 % of their dense peak")
             .arg(text(format_seconds(t.step_seconds)), parts.join(QStringLiteral(", ")),
                  count(t.tokens_per_second), QString::number(100 * t.mfu, 'f', 0)) +
         cost(a);
}

}  // namespace shardplan::gui
