#include "models/findings.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "models/core_words.h"
#include "models/messages.h"
#include "models/text.h"
#include "report/words.h"

namespace shardplan::gui {
namespace {

QString said(const Diagnostic& d) {
  Diagnostic plain = d;
  plain.key.clear();  // has a column of its own
  return Messages::of(plain);
}

QString value_text(const Json& value) {
  return value.is_number_integer() ? text(format_count(value.get<std::int64_t>()))
                                   : text(value.dump());
}

QString paragraph(const QString& html) {
  return html.isEmpty() ? QString() : QStringLiteral("<p>%1</p>").arg(html);
}

const KeyCost* cost_of(const LintReport& report, const std::string& path) {
  const auto it = std::find_if(report.costs.begin(), report.costs.end(),
                               [&](const KeyCost& cost) { return cost.path == path; });
  return it == report.costs.end() ? nullptr : &*it;
}

}  // namespace

QString Findings::severity(Severity level) {
  return words(report::message("severity." + std::string(name_of(level))));
}

QString Findings::delta(const PriceDelta& d) {
  QStringList parts;
  const auto add = [&](const QString& where, std::int64_t bytes) {
    if (bytes != 0) parts.push_back(QStringLiteral("%1 %2").arg(where, text(format_delta(bytes))));
  };
  add(tr("GPU"), d.gpu);
  add(tr("host"), d.host);
  add(tr("NVMe"), d.nvme);
  constexpr double kNoticeable = 0.005;
  if (std::abs(d.pace - 1) >= kNoticeable)
    parts.push_back(tr("time %1%2 %")
                        .arg(d.pace > 1 ? QStringLiteral("+") : QStringLiteral("−"))
                        .arg(std::abs(100 * (d.pace - 1)), 0, 'f', 0));
  return parts.isEmpty() ? tr("nothing") : parts.join(QStringLiteral(", "));
}

/// In other languages the rule's title leads: a message may be no more than a value.
QString Findings::message_of(const LintFinding& f) {
  const QString message = said(f.diagnostic);
  return language() == QStringLiteral("en") ? message
                                            : tr("%1: %2").arg(title_of(*f.rule), message);
}

Finding Findings::row_of(const LintFinding& f, const KeyCost* cost) {
  Finding row{.severity = severity(f.diagnostic.severity),
              .key = text(f.diagnostic.key),
              .message = message_of(f),
              .level = f.diagnostic.severity,
              .edits = f.edits};
  if (cost != nullptr && cost->costs) row.costs = delta(*cost->costs);
  QStringList edits;
  for (const Edit& edit : f.edits) edits.push_back(text(to_string(edit)));
  row.fix = edits.isEmpty() ? advice_of(*f.rule) : edits.join(QStringLiteral("; "));
  row.detail =
      QStringLiteral("<p><b>%1</b>%2</p>")
          .arg(row.message.toHtmlEscaped(), f.diagnostic.position.known()
                                                ? tr(" (line %1)").arg(f.diagnostic.position.line)
                                                : QString());
  row.detail += paragraph(explanation_of(*f.rule).toHtmlEscaped());
  if (!row.costs.isEmpty())
    row.detail += paragraph(tr("The key as it is, against being without it: %1").arg(row.costs));
  row.detail += paragraph(tr("Fix: %1").arg(row.fix.toHtmlEscaped()));
  row.detail += paragraph(
      tr("Source: %1 [%2]").arg(text(f.rule->source).toHtmlEscaped(), text(f.rule->id.text())));
  return row;
}

Finding Findings::row_of(const KeyCost& cost) {
  Finding row{
      .severity = tr("cost"),
      .key = text(cost.path),
      .message =
          cost.without.is_null()
              ? tr("%1; without it: off").arg(value_text(cost.value))
              : tr("%1; without it: %2").arg(value_text(cost.value), value_text(cost.without)),
      .costs = cost.costs ? delta(*cost.costs) : QString()};
  row.detail = QStringLiteral("<p><b>%1</b>: %2</p>")
                   .arg(row.key.toHtmlEscaped(), row.message.toHtmlEscaped());
  row.detail +=
      paragraph(cost.costs ? tr("The key as it is, against being without it: %1").arg(row.costs)
                           : tr("It is required: %1").arg(words(cost.problem).toHtmlEscaped()));
  return row;
}

std::vector<Finding> Findings::of(const LintReport& report) {
  std::vector<Finding> rows;
  for (const LintFinding& f : report.findings)
    rows.push_back(row_of(f, cost_of(report, f.diagnostic.key)));
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Finding& a, const Finding& b) { return a.level > b.level; });
  for (const KeyCost& cost : report.costs)
    if (cost.given) rows.push_back(row_of(cost));
  for (const ResolvedAuto& r : report.autos) {
    const QString message = tr("becomes %1: %2").arg(text(r.value.dump()), gui::said(r.rule));
    rows.push_back({.severity = tr("auto"),
                    .key = text(r.path),
                    .message = message,
                    .detail = paragraph(message.toHtmlEscaped())});
  }
  return rows;
}

std::vector<Finding> Findings::of(const Answer& a) {
  std::vector<Finding> out;
  const auto add = [&](const Diagnostic& d) {
    const QString message = said(d);
    out.push_back({.severity = severity(d.severity),
                   .key = text(d.key),
                   .message = message,
                   .detail = paragraph(message.toHtmlEscaped()),
                   .level = d.severity});
  };
  if (a.error) add(*a.error);
  if (a.job)
    for (const Diagnostic& d : a.job->diagnostics) add(d);
  return out;
}

QString Findings::summary(const LintReport& report) {
  const int errors = report.count(Severity::error), warnings = report.count(Severity::warning),
            notes = report.count(Severity::note);
  const QString counts = tr("%1, %2, %3")
                             .arg(errors == 1 ? tr("1 error") : tr("%1 errors").arg(errors),
                                  warnings == 1 ? tr("1 warning") : tr("%1 warnings").arg(warnings),
                                  notes == 1 ? tr("1 note") : tr("%1 notes").arg(notes));
  if (report.now)
    return tr("%1; as it is: %2 of each GPU").arg(counts, bytes_text(report.now->price.gpu));
  return QStringLiteral("%1; %2").arg(counts, gui::said(report.not_priced));
}

RowsModel<Finding>* Findings::model(QObject* parent) {
  const auto column = [](QString title, QString Finding::*member) {
    return RowsModel<Finding>::Column{
        std::move(title), [member](const Finding& f, int role) -> QVariant {
          if (role == Qt::DisplayRole) return f.*member;
          return role == Qt::ToolTipRole ? QVariant(f.detail) : QVariant();
        }};
  };
  auto key = column(tr("key"), &Finding::key);
  key.value = [whole = key.value](const Finding& f, int role) -> QVariant {
    static const QString kZero = QStringLiteral("zero_optimization.");  // most keys are ZeRO's
    if (role == Qt::DisplayRole && f.key.startsWith(kZero)) return f.key.mid(kZero.size());
    return whole(f, role);
  };
  return new RowsModel<Finding>(
      {column(tr("what"), &Finding::severity), key, column(tr("costs"), &Finding::costs),
       column(tr("finding"), &Finding::message)},
      parent);
}

}  // namespace shardplan::gui
