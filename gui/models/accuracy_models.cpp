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
      {words_column(tr("record"), &Row::record), words_column(tr("framework"), &Row::framework),
       words_column(tr("figure"), &Row::figure), column(tr("predicted"), &Row::predicted),
       column(tr("measured"), &Row::measured), column(tr("error"), &Row::error, &Row::relative)},
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
      rows.push_back({text(c.name), text(c.framework), figure_name(figure),
                      value_of(figure, *c.predicted[f]), value_of(figure, *c.measured[f]),
                      percent(*error, true),
                      tr("(%1 − %2) ÷ %2 = %3; predicted for the record's own job, measured: read "
                         "from the record %4")
                          .arg(value_of(figure, *c.predicted[f]), value_of(figure, *c.measured[f]),
                               percent(*error, true), text(c.name)),
                      *error});
    }
  }
  std::stable_sort(rows.begin(), rows.end(), [](const RecordRow& a, const RecordRow& b) {
    return std::abs(a.relative) > std::abs(b.relative);
  });
  return rows;
}

}  // namespace shardplan::gui
