#include "models/plan_table.h"

#include <cmath>

#include "base/format.h"
#include "models/core_words.h"
#include "models/provenance.h"
#include "models/text.h"
#include "models/verdict_words.h"
#include "render/describe.h"
#include "render/estimate_text.h"
#include "report/words.h"

namespace shardplan::gui {
namespace {

QString bytes_or_dash(std::int64_t count) {
  return count == 0 ? QStringLiteral("–") : bytes_text(count);
}

/// Of the GPU. The cache of an engine fills what it is given: its headroom is another question.
std::int64_t spare(const Verdict& v) {
  return v.gpu.available.value_or(v.gpu.needed + v.headroom_bytes) - v.gpu.needed;
}

std::int64_t sent(const Estimate& e) {
  std::int64_t sum = 0;
  for (const TrafficLine& line : e.traffic)
    if (line.link == LinkKind::gpu) sum += line.bytes_per_step;
  return sum;
}

}  // namespace

void PlanTable::set_plans(std::vector<Alternative> plans, const Calibration& calibration) {
  beginResetModel();
  plans_ = std::move(plans);
  if (plans_.size() > kMostCompared) plans_.resize(kMostCompared);
  calibration_ = calibration;
  aspects_.clear();
  add_gpu_aspects();
  add_host_aspects();
  add_speed_aspects();
  endResetModel();
}

void PlanTable::add_gpu_aspects() {
  const GpuAbilities gpu =
      plans_.empty() ? GpuAbilities{} : plans_.front().plan.cluster.gpu.abilities;
  const Words device = [](const Alternative& a) { return Provenance::device(a.estimate, a.plan); };
  add(
      tr("verdict"), [](const Alternative& a) { return VerdictWords::brief(a.estimate.verdict); },
      device);
  add(
      tr("each GPU"), [](const Alternative& a) { return bytes_or_dash(a.estimate.device.point); },
      device);
  add(
      tr("upper bound"),
      [](const Alternative& a) { return bytes_or_dash(a.estimate.device.upper); }, device);
  add(
      tr("to spare"), [](const Alternative& a) { return bytes_text(spare(a.estimate.verdict)); },
      device);
  add(
      tr("model states"),
      [](const Alternative& a) { return bytes_or_dash(model_states(a.estimate)); },
      [](const Alternative&) {
        return tr("parameters, gradients and optimizer states between steps");
      });
  for (std::size_t c = 0; c < kCategoryCount; ++c)
    add(
        QStringLiteral("   ") + words(report::words_of(static_cast<Category>(c), gpu)),
        [c](const Alternative& a) { return bytes_or_dash(a.estimate.breakdown[c].at_peak); },
        [this, c](const Alternative& a) {
          return Provenance::category(a.estimate, a.plan, a.estimate.breakdown[c], calibration_);
        });
}

void PlanTable::add_host_aspects() {
  const Words host = [](const Alternative& a) {
    return Provenance::host(a.estimate.host_per_node);
  };
  add(
      tr("each host"),
      [](const Alternative& a) { return bytes_or_dash(a.estimate.host_per_node.total()); }, host);
  add(
      tr("NVMe of each node"),
      [](const Alternative& a) { return bytes_or_dash(a.estimate.host_per_node.nvme); },
      [](const Alternative& a) { return Provenance::nvme(a.estimate.host_per_node); });
}

void PlanTable::add_speed_aspects() {
  const Words rates = [](const Alternative& a) { return Provenance::rates(a.estimate, a.plan); };
  add(
      tr("sent by each GPU per step"),
      [](const Alternative& a) { return bytes_or_dash(sent(a.estimate)); },
      [](const Alternative& a) {
        QString all;
        for (const TrafficLine& line : a.estimate.traffic)
          if (line.link == LinkKind::gpu) all += Provenance::traffic(a.plan, line);
        return all;
      });
  const bool serves = !plans_.empty() && plans_.front().estimate.serving;
  add(
      serves ? tr("time of one pass") : tr("time per step"),
      [](const Alternative& a) {
        const double seconds = a.estimate.time.step_seconds;
        return seconds > 0 ? text(format_seconds(seconds)) : QStringLiteral("–");
      },
      [rates](const Alternative& a) {
        return a.estimate.serving ? rates(a) : Provenance::step(a.estimate);
      });
  add(
      tr("tokens per second"),
      [](const Alternative& a) {
        const double all = a.estimate.time.tokens_per_second;
        return text(
            format_count(a.estimate.serving ? std::llround(all) : static_cast<std::int64_t>(all)));
      },
      rates);
}

void PlanTable::add(const QString& name, const Words& value, Words hint) {
  Aspect aspect{name, {}, std::move(hint)};
  bool any = false;
  for (const Alternative& plan : plans_) {
    aspect.values.push_back(value(plan));
    any = any || aspect.values.back() != QStringLiteral("–");
  }
  if (any) aspects_.push_back(std::move(aspect));
}

int PlanTable::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(aspects_.size());
}

int PlanTable::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(plans_.size()) + 1;
}

QVariant PlanTable::data(const QModelIndex& at, int role) const {
  if (!checkIndex(at, CheckIndexOption::IndexIsValid)) return {};
  const Aspect& aspect = aspects_[static_cast<std::size_t>(at.row())];
  if (at.column() == 0) return role == Qt::DisplayRole ? QVariant(aspect.name) : QVariant();
  const auto plan = static_cast<std::size_t>(at.column() - 1);
  const bool differs = aspect.values[plan] != aspect.values.front();
  switch (role) {
    case Qt::DisplayRole:
      return aspect.values[plan];
    case Qt::TextAlignmentRole:
      return QVariant::fromValue(Qt::Alignment(Qt::AlignRight | Qt::AlignVCenter));
    case Qt::AccessibleTextRole:
      return QStringLiteral("%1, %2: %3")
          .arg(words(plans_[plan].name), aspect.name, aspect.values[plan]);
    case Qt::ToolTipRole:
      return aspect.hint(plans_[plan]);
    case Qt::AccessibleDescriptionRole:
      return differs ? tr("differs from the first plan") : QString();
    case kDiffersRole:
      return differs;
    default:
      return {};
  }
}

QVariant PlanTable::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || role != Qt::DisplayRole) return {};
  if (section <= 0 || section >= columnCount()) return QString();
  const Alternative& plan = plans_[static_cast<std::size_t>(section - 1)];
  return words(plan.name) + (plan.is_current ? tr(" (this job)") : QString());
}

}  // namespace shardplan::gui
