#include "models/accuracy_models.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/format.h"
#include "models/text.h"

namespace shardplan::gui {
namespace {

constexpr std::array kShown{Figure::allocated_peak, Figure::reserved, Figure::device,
                            Figure::step_seconds};

QString percent(double share, bool with_sign) {
  const QString sign = with_sign && share > 0 ? QStringLiteral("+") : QString();
  return QStringLiteral("%1%2 %").arg(sign, QString::number(100 * share, 'f', 2));
}

QString value_of(Figure figure, double value) {
  return text(figure == Figure::step_seconds ? format_seconds(value)
                                             : format_bytes(static_cast<std::int64_t>(value)));
}

template <typename Row>
typename RowsModel<Row>::Column column(QString title, QString Row::*member,
                                       double Row::*value = nullptr) {
  return {std::move(title),
          [member, value](const Row& row, int role) -> QVariant {
            if (role == kValueRole) return value ? QVariant(std::abs(row.*value)) : row.*member;
            if (role == Qt::ToolTipRole) return row.hint;
            return role == Qt::DisplayRole ? QVariant(row.*member) : QVariant();
          },
          true};
}

template <typename Row>
typename RowsModel<Row>::Column words_column(QString title, QString Row::*member) {
  auto words = column(std::move(title), member);
  words.is_number = false;
  return words;
}

}  // namespace

QString AccuracyModels::figure_name(Figure figure) {
  switch (figure) {
    case Figure::allocated_peak:
      return tr("allocated peak");
    case Figure::reserved:
      return tr("reserved");
    case Figure::device:
      return tr("each GPU");
    case Figure::step_seconds:
      return tr("time per step");
    default:
      return text(kFigureNames[index_of(figure)]);  // none that is shown
  }
}

RowsModel<SummaryRow>* AccuracyModels::summary_model(QObject* parent) {
  using Row = SummaryRow;
  return new RowsModel<Row>(
      {words_column(tr("records of"), &Row::group), words_column(tr("figure"), &Row::figure),
       column(tr("records"), &Row::records),
       column(tr("mean |error|"), &Row::mean, &Row::mean_error),
       column(tr("mean error"), &Row::signed_mean), column(tr("largest"), &Row::largest),
       words_column(tr("of record"), &Row::worst)},
      parent);
}

RowsModel<RecordRow>* AccuracyModels::record_model(QObject* parent) {
  using Row = RecordRow;
  return new RowsModel<Row>(
      {column(tr("error"), &Row::error, &Row::relative), column(tr("predicted"), &Row::predicted),
       column(tr("measured"), &Row::measured), words_column(tr("record"), &Row::record),
       words_column(tr("framework"), &Row::framework)},
      parent);
}

std::vector<SummaryRow> AccuracyModels::summaries(const Accuracy& accuracy) {
  std::vector<SummaryRow> rows;
  const auto add = [&](const GroupSummary& group, const QString& name) {
    for (const Figure figure : kShown) {
      const ErrorSummary& s = group.figures[index_of(figure)];
      if (s.count == 0) continue;
      rows.push_back(
          {name, figure_name(figure), text(format_count(s.count)), percent(s.mean_absolute, false),
           percent(s.mean_signed, true), percent(s.largest, true), text(s.worst),
           tr("over %1 records: (predicted − measured) ÷ measured of each; measured: read from "
              "records under data/measurements")
               .arg(s.count),
           s.mean_absolute});
    }
  };
  add(accuracy.all, tr("all"));
  for (const GroupSummary& group : accuracy.groups) add(group, text(group.name));
  return rows;
}

std::vector<RecordRow> AccuracyModels::records(const Accuracy& accuracy) {
  std::vector<RecordRow> rows;
  for (const Comparison& c : accuracy.comparisons) {
    for (const Figure figure : kShown) {
      const std::size_t f = index_of(figure);
      const auto error = relative_error(c.predicted[f], c.measured[f]);
      if (!error) continue;
      rows.push_back(
          {text(c.name), text(c.framework), figure_name(figure), value_of(figure, *c.predicted[f]),
           value_of(figure, *c.measured[f]), percent(*error, true),
           tr("(%1 − %2) ÷ %2 = %3; predicted for the record's own job, measured: read "
              "from the record %4")
               .arg(value_of(figure, *c.predicted[f]), value_of(figure, *c.measured[f]),
                    percent(*error, true), text(c.name)),
           *error, text(c.framework_name),
           QStringLiteral("%1 %2 %3").arg(text(c.model), text(c.precision), text(c.file)), figure,
           *c.predicted[f], *c.measured[f], c.name, c.file});
    }
  }
  std::stable_sort(rows.begin(), rows.end(), [](const RecordRow& a, const RecordRow& b) {
    return std::abs(a.relative) > std::abs(b.relative);
  });
  return rows;
}

std::vector<RecordRow> AccuracyModels::filtered(const std::vector<RecordRow>& rows,
                                                const RecordFilter& filter) {
  const QStringList wanted = filter.words.split(QLatin1Char(' '), Qt::SkipEmptyParts);
  std::vector<RecordRow> out;
  for (const RecordRow& row : rows) {
    if (filter.figure && row.of != *filter.figure) continue;
    if (!filter.kind.isEmpty() && row.kind != filter.kind) continue;
    if (filter.names && !filter.names->contains(row.name)) continue;
    const QString all =
        row.record + QLatin1Char(' ') + row.framework + QLatin1Char(' ') + row.about;
    if (std::all_of(wanted.begin(), wanted.end(),
                    [&](const QString& word) { return all.contains(word, Qt::CaseInsensitive); }))
      out.push_back(row);
  }
  return out;
}

QStringList AccuracyModels::kinds(const std::vector<RecordRow>& rows) {
  std::set<QString> names;
  for (const RecordRow& row : rows) names.insert(row.kind);
  return QStringList(names.begin(), names.end());
}

PlotData AccuracyModels::plot(const std::vector<RecordRow>& rows, const QStringList& kinds,
                              const std::vector<QColor>& colours) {
  constexpr std::array kMarkers{Marker::circle, Marker::square, Marker::triangle, Marker::diamond};
  PlotData data;
  const bool is_time = !rows.empty() && rows.front().of == Figure::step_seconds;
  const PlotUnit unit = is_time ? PlotUnit::seconds : PlotUnit::bytes;
  data.x = {tr("measured"), unit, PlotScale::logarithmic};
  data.y = {tr("predicted"), unit, PlotScale::logarithmic};
  data.diagonal = true;
  data.empty = tr("No record is like that.");
  for (qsizetype kind = 0; kind < kinds.size(); ++kind) {
    const auto k = static_cast<std::size_t>(kind);
    data.series.push_back(
        {kinds[kind], colours[k % colours.size()], kMarkers[k % kMarkers.size()]});
  }
  for (const RecordRow& row : rows)
    data.points.push_back(
        {row.measured_value, row.predicted_value, row.record,
         QStringLiteral("<b>%1</b><br>%2<br>%3")
             .arg(row.record.toHtmlEscaped(), row.framework.toHtmlEscaped(), row.hint),
         static_cast<int>(std::max<qsizetype>(0, kinds.indexOf(row.kind)))});
  return data;
}

QString AccuracyModels::similarity(const SimilarRecords& like, const Plan& plan) {
  const QString framework = text(framework_group(plan));
  switch (like.similarity) {
    case Similarity::framework_gpus_precision:
      return tr("%1, %2, on %3 GPUs")
          .arg(framework, text(plan.precision.name))
          .arg(plan.cluster.world());
    case Similarity::framework_precision:
      return tr("%1, %2, on any number of GPUs").arg(framework, text(plan.precision.name));
    case Similarity::framework:
      return tr("%1, in any precision").arg(framework);
    case Similarity::any:
      break;
  }
  return tr("of any kind: none are like this job");
}

QString AccuracyModels::like_this(const SimilarRecords& like, const Plan& plan) {
  const ErrorSummary& device = like.errors.figures[index_of(Figure::device)];
  const ErrorSummary& time = like.errors.figures[index_of(Figure::step_seconds)];
  if (device.count == 0 && time.count == 0) return tr("No record says anything of such a job.");
  QStringList parts;
  const auto add = [&](const QString& what, const ErrorSummary& s) {
    if (s.count > 0)
      parts.push_back(
          tr("%1 off by %2 on average, %3 at most")
              .arg(what, percent(s.mean_absolute, false), percent(std::abs(s.largest), false)));
  };
  add(tr("memory of each GPU"), device);
  add(tr("time per step"), time);
  QString said = tr("For a job like this one, %1 measured runs (%2) say: %3.")
                     .arg(like.errors.records)
                     .arg(similarity(like, plan), parts.join(QStringLiteral("; ")));
  said += QLatin1Char(' ') + tr("%1 of them are in no fit of any constant; %2 ran on this GPU.")
                                 .arg(like.held_out)
                                 .arg(like.same_gpu);
  return said;
}

}  // namespace shardplan::gui
