#include "models/provenance.h"

#include <fmt/format.h>

#include <cmath>

#include "base/format.h"
#include "estimate/nccl_memory.h"
#include "formats/dtype.h"
#include "frameworks/registry.h"
#include "models/core_words.h"
#include "models/job_words.h"
#include "models/text.h"
#include "render/describe.h"
#include "report/words.h"

namespace shardplan::gui {
namespace {

/// "3.14 GiB (3,369,209,856 B)"
QString precisely(std::int64_t count) {
  return QStringLiteral("%1 (%2 B)").arg(bytes_text(count), text(format_count(count)));
}

QString page(const QString& title, const QString& formula, const QString& standing) {
  return QStringLiteral("<p><b>%1</b><br>%2<br><i>%3</i></p>")
      .arg(title.toHtmlEscaped(),
           formula.toHtmlEscaped().replace(QLatin1Char('\n'), QStringLiteral("<br>")),
           standing.toHtmlEscaped());
}

/// One model, of which nothing but the states is divided.
bool is_plain_training(const Plan& plan) {
  return plan.workload.kind == WorkKind::train && plan.parallel.only_data();
}

}  // namespace

QString Provenance::standing(Source source) {
  switch (source) {
    case Source::exact:
      return tr("exact: counted from the model and the plan");
    case Source::modelled:
      return tr("modelled: a closed form, or simulated (docs/explanation/memory.md)");
    case Source::calibrated:
      return tr("calibrated: fitted to measurements");
    case Source::measured:
      return tr("measured: read from a record");
    case Source::assumed:
      return tr("assumed: a default");
  }
  return {};
}

QString Provenance::category(const Estimate& e, const Plan& plan, const CategoryLine& line,
                             const Calibration& calibration) {
  const QString title = tr("%1 at the peak: %2")
                            .arg(words(report::words_of(line.category, plan.cluster.gpu.abilities)),
                                 precisely(line.at_peak));
  QString formula;
  QString standing = Provenance::standing(line.source);
  switch (line.category) {
    case Category::parameters:
    case Category::gradients:
    case Category::master_parameters:
    case Category::optimizer_states: {
      const bool frozen_too = line.category == Category::parameters;
      const std::int64_t count = frozen_too ? e.parameters : e.trainable_parameters;
      const std::int64_t over =
          is_plain_training(plan) ? traits_of(plan).divided_over(plan, line.category) : 1;
      formula = tr("%1 parameters, kept on this GPU: %2, which is %3 B for each of them")
                    .arg(text(format_count(count)), precisely(line.resident),
                         QString::number(static_cast<double>(line.resident) /
                                             static_cast<double>(std::max<std::int64_t>(count, 1)),
                                         'f', 3));
      if (over > 1) formula += tr("\nspread over %1 GPUs, padding included").arg(over);
      break;
    }
    case Category::fragmentation:
      formula = tr("reserved − allocated = %1 − %2: PyTorch's caching allocator, run over every "
                   "block of the step")
                    .arg(bytes_text(e.reserved.point), bytes_text(e.allocated.point));
      break;
    case Category::cuda_context:
      formula = tr("a constant of the process");
      standing += QStringLiteral(" (%1)").arg(text(calibration.name));
      break;
    case Category::nccl: {
      const ProcessOverhead& overhead = calibration.overhead_of(plan.framework.kind);
      const std::vector<Communicator> list = communicators(plan, e.rank);
      formula = tr("%1's kernels, and the channels of each communicator (of how many ranks):")
                    .arg(text(plan.cluster.gpu.abilities.collectives));
      for (const Communicator& c : list)
        formula += QStringLiteral("\n%1 (%2): %3")
                       .arg(text(c.name))
                       .arg(c.shape.ranks)
                       .arg(bytes_text(communicator_bytes(c, overhead.nccl)));
      standing += QStringLiteral(" (%1)").arg(text(calibration.name));
      break;
    }
    default:
      formula = tr("alive when the step's allocations peak, in %1; %2 between steps")
                    .arg(words(report::words_of(e.peak_phase)), bytes_text(line.resident));
      break;
  }
  return page(title, formula, standing);
}

QString Provenance::device(const Estimate& e, const Plan& plan) {
  const std::int64_t outside = e.device.point - e.reserved.point;
  const QString formula =
      tr("reserved %1 + %8 context and %9 %2 = %3\n"
         "of it allocated: %4; upper bound %5: what a real run is not expected to pass\n"
         "usable %6 of %7: what a process can allocate")
          .arg(bytes_text(e.reserved.point), bytes_text(outside), precisely(e.device.point),
               bytes_text(e.allocated.point), bytes_text(e.device.upper),
               bytes_text(e.usable_bytes), bytes_text(e.capacity_bytes),
               text(plan.cluster.gpu.abilities.runtime),
               text(plan.cluster.gpu.abilities.collectives));
  return page(tr("Memory of the fullest GPU, as nvidia-smi shows it"), formula,
              tr("modelled; usable memory: %1").arg(standing(plan.cluster.gpu.usable_source)));
}

QString Provenance::host(const HostMemory& node) {
  return page(tr("Memory of each host: %1").arg(precisely(node.total())),
              tr("pageable %1 + pinned %2, of all processes of a node")
                  .arg(bytes_text(node.pageable), bytes_text(node.pinned)),
              standing(Source::modelled));
}

QString Provenance::nvme(const HostMemory& node) {
  return page(tr("NVMe of each node: %1").arg(precisely(node.nvme)),
              tr("what the processes of a node swap out"), standing(Source::modelled));
}

QString Provenance::live(const Answer& a, std::int64_t live_bytes, const QString& moment) {
  return page(tr("Live tensors %1: %2").arg(moment, precisely(live_bytes)),
              tr("the step, simulated allocation by allocation: %1 turning points")
                  .arg(a.timeline->points.size()),
              standing(Source::modelled));
}

QString Provenance::traffic(const Plan& plan, const TrafficLine& line) {
  const std::int64_t world = plan.cluster.world();
  const QString formula =
      line.link == LinkKind::gpu
          ? tr("%1 in collectives among %2 GPUs; with ring algorithms each sends %3")
                .arg(precisely(line.payload_bytes))
                .arg(world)
                .arg(precisely(line.bytes_per_step))
          : tr("%1 copied per step").arg(precisely(line.bytes_per_step));
  return page(words(line.what), formula, standing(Source::modelled));
}

QString Provenance::seconds(const QString& name, double seconds, const QString& formula,
                            Source source) {
  return page(QStringLiteral("%1: %2").arg(name, text(format_seconds(seconds))), formula,
              standing(source));
}

QString Provenance::step(const Estimate& e) {
  const TimeEstimate& t = e.time;
  return page(
      tr("Time per step: %1").arg(text(format_seconds(t.step_seconds))),
      tr("compute %1 + exposed communication %2 + exposed copies %3 + optimizer %4 + pipeline %5 "
         "+ idle %6")
          .arg(text(format_seconds(t.compute_seconds)),
               text(format_seconds(t.exposed_communication_seconds)),
               text(format_seconds(t.exposed_copy_seconds)),
               text(format_seconds(t.optimizer_seconds)), text(format_seconds(t.bubble_seconds)),
               text(format_seconds(t.idle_seconds))),
      standing(t.source) + JobWords::error(t));
}

QString Provenance::rates(const Estimate& e, const Plan& plan) {
  const TimeEstimate& t = e.time;
  const Workload& w = plan.workload;
  if (e.serving)
    return page(
        tr("Tokens per second"),
        tr("%1 engines × %2 sequences ÷ %3 from one token of a sequence to its next\n"
           "a pass takes %4, and %5 tokens of prompts along")
            .arg(text(format_count(e.serving->replicas)), text(format_count(e.serving->sequences)),
                 text(format_seconds(e.serving->token_seconds)),
                 text(format_seconds(e.serving->pass.seconds())),
                 text(format_count(std::llround(e.serving->prompt_tokens)))),
        standing(t.source));
  if (t.generation)
    return page(
        tr("Tokens per second"),
        tr("%1 sequences × %2 new tokens ÷ %3, after %4 for the prompts\n"
           "at datasheet rates: %5 for the new tokens")
            .arg(text(format_count(w.micro_batch)), text(format_count(w.generation.new_tokens)),
                 text(format_seconds(t.generation->decode_seconds)),
                 text(format_seconds(t.generation->prefill_seconds)),
                 text(format_seconds(t.generation->decode_speed_of_light))),
        standing(t.source) + JobWords::error(t));
  const QString product =
      plan.parallel.only_data()
          ? tr("%1 GPUs × micro-batch %2 × %3 tokens × %4 accumulation steps ÷ %5\n"
               "at datasheet rates, with everything hidden: %6 per step")
          : tr("data %1 × micro-batch %2 × %3 tokens × %4 accumulation steps ÷ %5\n"
               "at datasheet rates, with everything hidden: %6 per step");
  return page(tr("Tokens per second"),
              product.arg(plan.data_ranks())
                  .arg(w.micro_batch)
                  .arg(w.sequence_length)
                  .arg(w.gradient_accumulation)
                  .arg(text(format_seconds(t.step_seconds)),
                       text(format_seconds(t.speed_of_light_seconds))),
              standing(t.source) + JobWords::error(t));
}

QString Provenance::fix(const QStringList& sets, const Fix& fix, const Estimate& before) {
  const Estimate& after = fix.after;
  QString formula = sets.join(QLatin1Char('\n'));
  formula += QLatin1Char('\n');
  formula += tr("GPU: %1 − %2 = %3 saved; the whole plan estimated with the change")
                 .arg(bytes_text(before.device.point), bytes_text(after.device.point),
                      bytes_text(fix.gpu_saved));
  if (fix.slowdown > 0)
    formula += QLatin1Char('\n') + tr("time: a step of %1 ÷ one of %2, for each token: %3×")
                                       .arg(text(format_seconds(after.time.step_seconds)),
                                            text(format_seconds(before.time.step_seconds)),
                                            QString::number(fix.slowdown, 'g', 3));
  return page(tr("What it sets"), formula, standing(Source::modelled));
}

}  // namespace shardplan::gui
