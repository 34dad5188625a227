#include "models/findings.h"

#include "models/core_words.h"
#include "models/messages.h"
#include "models/text.h"

namespace shardplan::gui {

std::vector<Finding> Findings::of(const Answer& a) {
  std::vector<Finding> out;
  const auto add = [&](const Diagnostic& d) {
    Diagnostic plain = d;
    plain.key.clear();
    const QString severity = d.severity == Severity::error     ? tr("error")
                             : d.severity == Severity::warning ? tr("warning")
                                                               : tr("note");
    out.push_back({severity, text(d.key), Messages::of(plain), d.severity});
  };
  if (a.error) add(*a.error);
  if (!a.job) return out;
  for (const Diagnostic& d : a.job->diagnostics) add(d);
  for (const ResolvedAuto& r : a.job->autos)
    out.push_back({tr("auto"), text(r.path),
                   tr("becomes %1: %2").arg(text(r.value.dump()), text(r.rule)), Severity::note});
  return out;
}

RowsModel<Finding>* Findings::model(QObject* parent) {
  const auto column = [](QString title, QString Finding::*member) {
    return RowsModel<Finding>::Column{
        std::move(title), [member](const Finding& f, int role) -> QVariant {
          if (role == Qt::DisplayRole) return f.*member;
          return role == Qt::ToolTipRole ? QVariant(f.message) : QVariant();
        }};
  };
  return new RowsModel<Finding>(
      {column(tr("what"), &Finding::severity), column(tr("key"), &Finding::key),
       column(tr("finding"), &Finding::message)},
      parent);
}

}  // namespace shardplan::gui
