#include "models/provenance.h"

#include <fmt/format.h>

#include "base/dtype.h"
#include "base/format.h"
#include "models/core_words.h"
#include "models/text.h"
#include "render/describe.h"
#include "report/words.h"

namespace shardplan::gui {
namespace {

QString bytes(std::int64_t count) {
  return text(format_bytes(count));
}

/// "3.14 GiB (3,369,209,856 B)"
QString precisely(std::int64_t count) {
  return QStringLiteral("%1 (%2 B)").arg(bytes(count), text(format_count(count)));
}

QString page(const QString& title, const QString& formula, const QString& standing) {
  return QStringLiteral("<p><b>%1</b><br>%2<br><i>%3</i></p>")
      .arg(title.toHtmlEscaped(),
           formula.toHtmlEscaped().replace(QLatin1Char('\n'), QStringLiteral("<br>")),
           standing.toHtmlEscaped());
}

/// Over how many GPUs the framework spreads a category; 1: each keeps all of it.
std::int64_t sharded_over(const Plan& plan, Category category) {
  const std::int64_t world = plan.cluster.world();
  switch (plan.framework.kind) {
    case FrameworkKind::fsdp2:
      return world;
    case FrameworkKind::ddp:
      return plan.framework.ddp.zero_redundancy_optimizer && category == Category::optimizer_states
                 ? world
                 : 1;
    case FrameworkKind::deepspeed: {
      const int stage = plan.framework.deepspeed.zero.stage;
      const bool states =
          category == Category::optimizer_states || category == Category::master_parameters;
      if (states) return stage >= 1 ? world : 1;
      if (category == Category::gradients) return stage >= 2 ? world : 1;
      return stage >= 3 ? world : 1;
    }
    case FrameworkKind::megatron:
      return plan.framework.megatron.distributed_optimizer &&
                     (category == Category::optimizer_states ||
                      category == Category::master_parameters)
                 ? plan.data_ranks()
                 : 1;
    case FrameworkKind::single:
    case FrameworkKind::native:
      break;
  }
  return 1;
}

}  // namespace

QString Provenance::standing(Source source) {
  switch (source) {
    case Source::exact:
      return tr("exact: counted from the model and the plan");
    case Source::modelled:
      return tr("modelled: a closed form, or simulated (docs/memory.md)");
    case Source::calibrated:
      return tr("calibrated: fitted to measurements");
    case Source::measured:
      return tr("measured: read from a record");
    case Source::assumed:
      return tr("assumed: a default");
  }
  return {};
}

QString Provenance::category(const Answer& a, const CategoryLine& line,
                             const Calibration& calibration) {
  const Estimate& e = *a.estimate;
  const Plan& plan = a.job->plan;
  const QString title =
      tr("%1 at the peak: %2").arg(words(report::words_of(line.category)), precisely(line.at_peak));
  QString formula;
  QString standing = Provenance::standing(line.source);
  switch (line.category) {
    case Category::parameters:
    case Category::gradients:
    case Category::master_parameters:
    case Category::optimizer_states: {
      const bool frozen_too = line.category == Category::parameters;
      const std::int64_t count = frozen_too ? e.parameters : e.trainable_parameters;
      const std::int64_t over = sharded_over(plan, line.category);
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
                    .arg(bytes(e.reserved.point), bytes(e.allocated.point));
      break;
    case Category::cuda_context:
      formula = tr("a constant of the process");
      standing += QStringLiteral(" (%1)").arg(text(calibration.name));
      break;
    case Category::nccl:
      formula = tr("%1 for the first communicator + %2 for each of %3 peers + %4 for each further "
                   "communicator")
                    .arg(bytes(calibration.nccl_base_bytes), bytes(calibration.nccl_bytes_per_peer))
                    .arg(plan.cluster.gpus_per_node - 1)
                    .arg(bytes(calibration.nccl_bytes_per_communicator));
      standing += QStringLiteral(" (%1)").arg(text(calibration.name));
      break;
    default:
      formula = tr("alive when the step's allocations peak, in %1; %2 between steps")
                    .arg(words(report::words_of(e.peak_phase)), bytes(line.resident));
      break;
  }
  return page(title, formula, standing);
}

QString Provenance::device(const Answer& a) {
  const Estimate& e = *a.estimate;
  const std::int64_t outside = e.device.point - e.reserved.point;
  const QString formula =
      tr("reserved %1 + CUDA context and NCCL %2 = %3\n"
         "of it allocated: %4; upper bound %5: what a real run is not expected to pass\n"
         "usable %6 of %7: what a process can allocate")
          .arg(bytes(e.reserved.point), bytes(outside), precisely(e.device.point),
               bytes(e.allocated.point), bytes(e.device.upper), bytes(e.usable_bytes),
               bytes(e.capacity_bytes));
  return page(
      tr("Memory of the fullest GPU, as nvidia-smi shows it"), formula,
      tr("modelled; usable memory: %1").arg(standing(a.job->plan.cluster.gpu.usable_source)));
}

QString Provenance::host(const Answer& a) {
  const HostMemory& h = a.estimate->host_per_node;
  return page(tr("Memory of each host: %1").arg(precisely(h.total())),
              tr("pageable %1 + pinned %2, of all processes of a node")
                  .arg(bytes(h.pageable), bytes(h.pinned)),
              standing(Source::modelled));
}

QString Provenance::nvme(const Answer& a) {
  return page(tr("NVMe of each node: %1").arg(precisely(a.estimate->host_per_node.nvme)),
              tr("what the processes of a node swap out"), standing(Source::modelled));
}

QString Provenance::live(const Answer& a, std::int64_t live_bytes, const QString& moment) {
  return page(tr("Live tensors %1: %2").arg(moment, precisely(live_bytes)),
              tr("the step simulated allocation by allocation, %1 turns of growth in all")
                  .arg(a.timeline.points.size()),
              standing(Source::modelled));
}

QString Provenance::traffic(const Answer& a, const TrafficLine& line) {
  const std::int64_t world = a.job->plan.cluster.world();
  const QString formula =
      line.link == LinkKind::gpu
          ? tr("%1 in collectives among %2 GPUs; with ring algorithms each sends %3")
                .arg(precisely(line.payload_bytes))
                .arg(world)
                .arg(precisely(line.bytes_per_step))
          : tr("%1 copied in a step").arg(precisely(line.bytes_per_step));
  return page(words(line.what), formula, standing(Source::modelled));
}

QString Provenance::seconds(const QString& name, double seconds, const QString& formula,
                            Source source) {
  return page(QStringLiteral("%1: %2").arg(name, text(format_seconds(seconds))), formula,
              standing(source));
}

QString Provenance::rates(const Answer& a) {
  const TimeEstimate& t = a.estimate->time;
  const Workload& w = a.job->plan.workload;
  return page(tr("Tokens a second"),
              tr("%1 GPUs × micro-batch %2 × %3 tokens × %4 accumulation steps ÷ %5\n"
                 "at datasheet rates, with everything hidden: %6 a step")
                  .arg(a.job->plan.cluster.world())
                  .arg(w.micro_batch)
                  .arg(w.sequence_length)
                  .arg(w.gradient_accumulation)
                  .arg(text(format_seconds(t.step_seconds)),
                       text(format_seconds(t.speed_of_light_seconds))),
              standing(t.source));
}

}  // namespace shardplan::gui
