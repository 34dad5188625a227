#include "models/rent_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "models/core_words.h"
#include "models/text.h"
#include "render/cost_text.h"
#include "render/describe.h"
#include "report/words.h"

namespace shardplan::gui {
namespace {

using Column = RowsModel<RentRow>::Column;

Column column(QString title, QString RentRow::*member, bool is_number = false,
              double RentRow::*value = nullptr) {
  return {std::move(title),
          [member, value](const RentRow& row, int role) -> QVariant {
            if (role == Qt::ToolTipRole) return row.error.isEmpty() ? row.hint : row.error;
            if (role == kValueRole && value != nullptr) {
              constexpr double kLast = 1e300;  // what is not known comes after all that is
              return row.*value > 0 ? row.*value : kLast;
            }
            return role == Qt::DisplayRole || role == kValueRole ? QVariant(row.*member)
                                                                 : QVariant();
          },
          is_number};
}

QString amount(const std::optional<double>& dollars) {
  return dollars ? QStringLiteral("$") + text(money(*dollars)) : QStringLiteral("–");
}

QString days_words(double days) {
  constexpr double kHours = 24, kFew = 2;
  if (days < kFew) return RentSession::tr("%1 hours").arg(kHours * days, 0, 'g', 2);
  return RentSession::tr("%1 days").arg(days, 0, 'f', days < 10 ? 1 : 0);
}

QString price_hint(const ListPrice& price, std::int64_t nodes) {
  QString hint =
      RentSession::tr("<b>%1 %2</b>, %3: $%4 an hour, on %5")
          .arg(text(price.provider).toHtmlEscaped(), text(price.machine).toHtmlEscaped(),
               text(price.region).toHtmlEscaped(), text(money(price.on_demand)), text(price.as_of));
  if (price.spot)
    hint += QStringLiteral("<br>") +
            RentSession::tr("where it may be taken away: $%1").arg(text(money(*price.spot)));
  if (nodes > 1) hint += QStringLiteral("<br>") + RentSession::tr("%1 machines").arg(nodes);
  return hint + QStringLiteral("<br>") +
         RentSession::tr("Source: %1").arg(text(price.source).toHtmlEscaped());
}

Json fields_of(const RentQuestion& question) {
  return Json{
      {"workload", {{"sequence_length", question.sequence_length}, {"tokens", question.tokens}}}};
}

/// The job of an answer: what was asked, with the batch that was found.
Json job_of(const RentQuestion& question, const MachineAnswer& a) {
  Json job{{"schema", "shardplan.job/1"},
           {"model", a.model},
           {"cluster", a.machine},
           {"checkpointing", "full"}};
  job.update(fields_of(question));
  job["workload"]["method"] = a.method;
  job["workload"]["micro_batch"] = a.plan.workload.micro_batch;
  return job;
}

/// As the page's own switches say it.
QString method_words(const std::string& method) {
  if (method == "full") return RentSession::tr("full");
  return method == "lora" ? QStringLiteral("LoRA") : QStringLiteral("QLoRA");
}

RentRow row_of(const RentQuestion& question, const MachineAnswer& a) {
  RentRow row;
  row.machine = text(a.machine);
  row.model = text(a.name.empty() ? a.model : a.name);
  row.method = method_words(a.method);
  row.error = text(a.error);
  row.fit = row.batch = row.tokens = row.days = row.dollars = row.spot = QStringLiteral("–");
  if (!a.error.empty()) return row;
  row.job = job_of(question, a);
  row.fits = a.estimate.verdict.fits;
  row.fit = words(report::words_of(overall(a.estimate.verdict)));
  if (a.cost.list) {
    row.provider = text(a.cost.list->provider);
    row.as_of = text(a.cost.list->as_of);
    row.hint = price_hint(*a.cost.list, a.plan.cluster.nodes);
  }
  if (!row.fits) return row;  // what does not run has no speed and no price
  row.batch = text(format_count(a.plan.workload.micro_batch));
  row.tokens_value = a.estimate.time.tokens_per_second;
  if (row.tokens_value > 0)
    row.tokens = text(format_count(static_cast<std::int64_t>(row.tokens_value)));
  row.days_value = a.cost.days.value_or(0);
  if (row.days_value > 0) row.days = days_words(row.days_value);
  row.dollars_value = a.cost.whole.on_demand.value_or(0);
  row.dollars = amount(a.cost.whole.on_demand);
  row.spot = amount(a.cost.whole.spot);
  return row;
}

/// The cheapest that fits first; what does not fit, and what cannot be told, last.
void sort(std::vector<RentRow>& rows) {
  const auto key = [](const RentRow& row) {
    return std::tuple(!row.error.isEmpty(), !row.fits, row.dollars_value <= 0, row.dollars_value);
  };
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const RentRow& a, const RentRow& b) { return key(a) < key(b); });
}

}  // namespace

RentSession::RentSession(Session& session, QObject* parent)
    : QObject(parent),
      session_(session),
      rows_(new RowsModel<RentRow>(
          {column(tr("machine"), &RentRow::machine), column(tr("provider"), &RentRow::provider),
           column(tr("model"), &RentRow::model), column(tr("method"), &RentRow::method),
           column(tr("verdict"), &RentRow::fit), column(tr("micro-batch"), &RentRow::batch, true),
           column(tr("tokens/s"), &RentRow::tokens, true, &RentRow::tokens_value),
           column(tr("time"), &RentRow::days, true, &RentRow::days_value),
           column(tr("dollars"), &RentRow::dollars, true, &RentRow::dollars_value),
           column(tr("dollars, spot"), &RentRow::spot, true),
           column(tr("price of"), &RentRow::as_of)},
          this)) {}

std::vector<std::string> RentSession::machines(std::int64_t nodes) const {
  std::vector<std::string> names;
  for (const Instance& i : session_.workbench().hardware.instances)
    if (i.price) names.push_back(nodes > 1 ? fmt::format("{}x{}", nodes, i.name) : i.name);
  return names;
}

void RentSession::start(const RentQuestion& question) {
  rows_->set_rows({});
  work_.start([this, question, machines = machines(question.nodes),
               hardware = session_.workbench().hardware,
               calibration = session_.workbench().calibration](const Background::Control& control) {
    std::vector<RentRow> rows;
    for (std::size_t i = 0; i < machines.size() && !control.stop.stop_requested(); ++i) {
      const auto answers = ask_machines({.models = question.models,
                                         .methods = question.methods,
                                         .machines = {machines[i]},
                                         .job = fields_of(question),
                                         .directory = "",
                                         .terms = {}},
                                        hardware, calibration, 0);
      for (const MachineAnswer& a : answers) rows.push_back(row_of(question, a));
      control.progress(static_cast<double>(i + 1) / static_cast<double>(machines.size()));
    }
    sort(rows);
    return [this, rows = std::move(rows)]() mutable { rows_->set_rows(std::move(rows)); };
  });
}

PlotData RentSession::plot(std::vector<int>& rows_of_points) const {
  PlotData data;
  data.x = {tr("days"), PlotUnit::days, PlotScale::automatic};
  data.y = {tr("dollars"), PlotUnit::money, PlotScale::automatic};
  data.empty = rows().empty() ? tr("Machines will appear here by days and dollars.")
                              : tr("No machine with a price fits.");
  data.series.push_back({});
  data.has_names = true;
  rows_of_points.clear();
  for (std::size_t i = 0; i < rows().size(); ++i) {
    const RentRow& row = rows()[i];
    if (!row.fits || row.days_value <= 0 || row.dollars_value <= 0) continue;
    data.points.push_back(
        {row.days_value, row.dollars_value, row.machine,
         QStringLiteral("%1<br>%2")
             .arg(tr("%1, %2: %3, %4").arg(row.model, row.method, row.days, row.dollars), row.hint),
         0});
    rows_of_points.push_back(static_cast<int>(i));
  }
  data.lines.push_back({front_of(data.points, true, true), {}, true});
  return data;
}

QString RentSession::summary() const {
  if (rows().empty()) return {};
  const RentRow& best = rows().front();
  if (!best.fits) return tr("None of %1 machines with a price fits.").arg(rows().size());
  const auto fastest =
      std::min_element(rows().begin(), rows().end(), [](const RentRow& a, const RentRow& b) {
        const auto days = [](const RentRow& r) { return r.days_value > 0 ? r.days_value : 1e300; };
        return days(a) < days(b);
      });
  return tr("Cheapest: %1 (%2), %3 in %4. Fastest: %5 (%6), %7 in %8.")
      .arg(best.machine, best.method, best.dollars, best.days, fastest->machine, fastest->method,
           fastest->dollars, fastest->days);
}

}  // namespace shardplan::gui
