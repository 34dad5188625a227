#include "models/run_models.h"

#include <algorithm>

#include "base/format.h"
#include "models/core_words.h"
#include "models/estimate_models.h"
#include "models/text.h"
#include "program/category.h"
#include "report/words.h"

namespace shardplan::gui {
namespace {

QString rounded_bytes(double count) {
  return bytes_text(static_cast<std::int64_t>(count));
}

QString seconds_words(double seconds) {
  return text(format_seconds(seconds));
}

/// How far a prediction is off, as the records' table says it.
QString error_of(double predicted, double measured) {
  if (predicted == measured) return RunModels::tr("exact");
  if (measured == 0) return QStringLiteral("–");
  const double share = (predicted - measured) / measured;
  return QStringLiteral("%1%2 %").arg(share > 0 ? QStringLiteral("+") : QString(),
                                      QString::number(100 * share, 'f', 2));
}

RowsModel<MeasuredRow>::Column column(QString title, QString MeasuredRow::*member, bool is_number) {
  return {std::move(title),
          [member](const MeasuredRow& row, int role) {
            return role == Qt::DisplayRole || role == kValueRole || role == Qt::ToolTipRole
                       ? QVariant(row.*member)
                       : QVariant();
          },
          is_number};
}

/// Points of a curve in their order, and the line through them.
void add_curve(PlotData& data, const std::vector<RunStep>& steps, const PlotSeries& series,
               const std::function<std::optional<double>(const RunStep&)>& value,
               const std::function<QString(double)>& words) {
  const int number = static_cast<int>(data.series.size());
  data.series.push_back(series);
  PlotLine line{{}, series.colour, false};
  for (const RunStep& step : steps) {
    const auto y = value(step);
    if (!y) continue;
    line.points.push_back(static_cast<int>(data.points.size()));
    const QString what = words(*y);
    data.points.push_back({static_cast<double>(step.step), *y, what,
                           RunModels::tr("step %1: %2").arg(step.step).arg(what), number});
  }
  data.lines.push_back(std::move(line));
}

PlotData plot_of_steps(QString title, PlotUnit unit) {
  PlotData data;
  data.x = {RunModels::tr("step"), PlotUnit::count, PlotScale::linear};
  data.y = {std::move(title), unit, PlotScale::linear};
  return data;
}

}  // namespace

RowsModel<MeasuredRow>* RunModels::model(QObject* parent) {
  using Row = MeasuredRow;
  return new RowsModel<Row>(
      {column(tr("memory of a rank"), &Row::name, false),
       column(tr("predicted"), &Row::predicted, true), column(tr("dry run"), &Row::planned, true),
       column(tr("measured"), &Row::measured, true), column(tr("error"), &Row::error, true)},
      parent);
}

QString RunModels::name_of(const RunFigure& figure) {
  if (figure.kind == RunFigure::Kind::category)
    for (std::size_t c = 0; c < kCategoryCount; ++c)
      if (figure.id == text(kCategoryNames[c]))
        return words(report::words_of(static_cast<Category>(c), GpuAbilities{}));
  if (figure.kind == RunFigure::Kind::peak) return tr("peak of the step");
  if (figure.id == QStringLiteral("model")) return tr("model built");
  const std::pair<const char*, Phase> kPhases[] = {
      {"forward", Phase::forward}, {"backward", Phase::backward}, {"step", Phase::step}};
  for (const auto& [id, phase] : kPhases) {
    const QString name = EstimateModels::phase_name(phase);
    if (figure.id == QLatin1String(id) + QStringLiteral(" peak")) return tr("%1, peak").arg(name);
    if (figure.id == QLatin1String(id) + QStringLiteral(" end"))
      return tr("%1, at its end").arg(name);
  }
  if (figure.id == QStringLiteral("host, pinned")) return tr("host, pinned");
  if (figure.id == QStringLiteral("host, pageable")) return tr("host, pageable");
  return figure.id;
}

std::vector<MeasuredRow> RunModels::rows(const ValidatorRun& run) {
  std::vector<MeasuredRow> rows;
  for (const RunFigure& f : run.figures())
    rows.push_back({name_of(f), rounded_bytes(f.predicted), rounded_bytes(f.planned),
                    f.measured ? rounded_bytes(*f.measured) : QStringLiteral("–"),
                    f.measured ? error_of(f.predicted, *f.measured) : QString()});
  if (!run.facts()) return rows;
  if (rows.empty() && !run.steps().empty()) {
    const RunStep& last = run.steps().back();
    rows.push_back({tr("peak of the step"),
                    rounded_bytes(run.facts()->predicted_peak),
                    {},
                    rounded_bytes(last.peak),
                    error_of(run.facts()->predicted_peak, last.peak)});
  }
  if (const auto measured = run.median_seconds()) {
    const auto predicted = run.facts()->predicted_seconds;
    rows.push_back({tr("time per step"),
                    predicted ? seconds_words(*predicted) : QStringLiteral("–"),
                    {},
                    seconds_words(*measured),
                    predicted ? error_of(*predicted, *measured) : QString()});
  }
  return rows;
}

PlotData RunModels::loss(const ValidatorRun& run, const RunColours& colours) {
  PlotData data = plot_of_steps(tr("loss"), PlotUnit::number);
  data.empty = tr("The loss of each step will appear here.");
  add_curve(
      data, run.steps(), {{}, colours.first, Marker::circle, true},
      [](const RunStep& s) { return s.loss; },
      [](double loss) { return QString::number(loss, 'f', 4); });
  return data;
}

PlotData RunModels::memory(const ValidatorRun& run, const RunColours& colours) {
  PlotData data = plot_of_steps(tr("memory of a rank"), PlotUnit::bytes);
  data.empty = tr("The memory of each step will appear here, beside the prediction.");
  add_curve(
      data, run.steps(), {tr("peak"), colours.first, Marker::circle, true},
      [](const RunStep& s) { return std::optional(s.peak); }, rounded_bytes);
  add_curve(
      data, run.steps(), {tr("between steps"), colours.second, Marker::square, true},
      [](const RunStep& s) { return std::optional(s.live); }, rounded_bytes);
  if (run.facts() && !data.points.empty())
    data.limits.push_back({false, run.facts()->predicted_peak,
                           tr("predicted: %1").arg(rounded_bytes(run.facts()->predicted_peak))});
  return data;
}

QString RunModels::state(const ValidatorRun& run) {
  if (run.is_running() && !run.facts()) return tr("Starting…");
  if (run.steps().empty() || !run.facts()) return {};
  const RunStep& s = run.steps().back();
  return tr("step %1 of %2: loss %3, %4, at most %5 of a rank")
      .arg(s.step)
      .arg(run.facts()->steps)
      .arg(s.loss ? QString::number(*s.loss, 'f', 4) : QStringLiteral("–"),
           seconds_words(s.seconds), rounded_bytes(s.peak));
}

QString RunModels::subject(const RunFacts& f) {
  const QString what = tr("%1, %2 parameters, ZeRO-%3")
                           .arg(f.model, text(format_count(f.parameters)))
                           .arg(f.zero_stage);
  return f.device == QStringLiteral("host")
             ? tr("%1, %2 ranks on this machine's CPU").arg(what).arg(f.ranks)
             : tr("%1, %2 GPUs").arg(what).arg(f.ranks);
}

}  // namespace shardplan::gui
