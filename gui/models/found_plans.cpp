#include "models/found_plans.h"

#include <algorithm>
#include <set>

#include "base/format.h"
#include "models/core_words.h"
#include "models/provenance.h"
#include "models/text.h"
#include "questions/cost.h"
#include "render/cost_text.h"
#include "render/search_text.h"

namespace shardplan::gui {
namespace {

/// The axes that differ on the front: the others say nothing of one plan beside another.
std::vector<std::size_t> telling_axes(const SearchSpace& space, const std::vector<Found>& front) {
  std::vector<std::size_t> axes;
  for (std::size_t a = 0; a < space.axes.size(); ++a)
    if (std::any_of(front.begin(), front.end(),
                    [&](const Found& f) { return f.choice[a] != front.front().choice[a]; }))
      axes.push_back(a);
  return axes;
}

/// The fewest of `axes` that tell as many plans apart as all of them do: each time the one that
/// tells most of those that are alike so far, so that a name that is cut says most.
std::vector<std::size_t> naming_axes(const std::vector<std::size_t>& axes,
                                     const std::vector<Found>& front) {
  const auto groups = [&](const std::vector<std::size_t>& of) {
    std::set<Choice> seen;
    for (const Found& f : front) {
      Choice part;
      for (const std::size_t a : of) part.push_back(f.choice[a]);
      seen.insert(std::move(part));
    }
    return seen.size();
  };
  std::vector<std::size_t> chosen;
  const std::size_t all = groups(axes);
  while (groups(chosen) < all) {
    std::size_t best = axes.front(), most = 0;
    for (const std::size_t a : axes) {
      std::vector<std::size_t> with = chosen;
      with.push_back(a);
      if (const std::size_t apart = groups(with); apart > most) {
        most = apart;
        best = a;
      }
    }
    chosen.push_back(best);
  }
  return chosen;
}

QString value_of(const SearchSpace& space, const Found& found, std::size_t axis) {
  const Axis& a = space.axes[axis];
  return words((a.labels.empty() ? a.values : a.labels)[found.choice[axis]]);
}

QString named_value(const SearchSpace& space, const Found& found, std::size_t axis) {
  const QString value = value_of(space, found, axis);
  if (space.axes[axis].name == "strategy") return value;  // "ZeRO-3" says what it is
  return QStringLiteral("%1 %2").arg(words(axis_head(space.axes[axis].name)), value);
}

QString all_choices(const SearchSpace& space, const Found& found) {
  QStringList out;
  for (std::size_t a = 0; a < space.axes.size(); ++a)
    if (space.axes[a].values.size() > 1)
      out.push_back(QStringLiteral("%1 %2").arg(words(axis_words(space.axes[a].name)),
                                                value_of(space, found, a)));
  return out.join(QStringLiteral(", "));
}

/// What each host needs; as a need where nobody knows what it has.
QString host_of(const ResourceVerdict& host) {
  if (host.needed == 0) return QStringLiteral("–");
  const QString bytes = bytes_text(host.needed);
  return host.available ? bytes : FoundPlans::tr("if it has %1").arg(bytes);
}

using Column = RowsModel<FoundRow>::Column;

Column number_column(QString title, QString FoundRow::*shown, Measure value) {
  return {std::move(title),
          [shown, value](const FoundRow& row, int role) -> QVariant {
            if (role == kValueRole) return row.measured_by(value);
            if (role == Qt::ToolTipRole) return row.hint;
            return role == Qt::DisplayRole ? QVariant(row.*shown) : QVariant();
          },
          true};
}

PlotUnit unit_of(Measure m) {
  switch (m) {
    case Measure::memory:
    case Measure::host_memory:
      return PlotUnit::bytes;
    case Measure::dollars:
      return PlotUnit::money;
    case Measure::time_per_token:
      return PlotUnit::seconds;
    case Measure::gpus:
      return PlotUnit::count;
    case Measure::tokens:
      break;
  }
  return PlotUnit::number;
}

}  // namespace

std::vector<FoundRow> FoundPlans::rows(const SearchSpace& space, const std::vector<Found>& front) {
  const std::vector<std::size_t> axes = telling_axes(space, front);
  const std::vector<std::size_t> naming = naming_axes(axes, front);
  std::vector<FoundRow> out;
  for (const Found& found : front) {
    const TimeEstimate& t = found.estimate.time;
    const Cost cost = cost_of(found.plan, t.step_seconds, {});
    const auto dollars = cost.per_billion_tokens.on_demand;
    FoundRow row;
    QStringList name;
    for (const std::size_t a : axes) row.choices.push_back(value_of(space, found, a));
    for (const std::size_t a : naming) name.push_back(named_value(space, found, a));
    row.name = name.join(QStringLiteral(", "));
    row.memory = bytes_text(found.estimate.device.point);
    row.host = host_of(found.estimate.verdict.host);
    row.step = t.step_seconds > 0 ? text(format_seconds(t.step_seconds)) : QStringLiteral("–");
    row.tokens = text(format_count(static_cast<std::int64_t>(t.tokens_per_second)));
    row.gpus = text(format_count(found.plan.cluster.world()));
    row.dollars = dollars ? text(money(*dollars)) : QStringLiteral("–");
    row.hint = QStringLiteral("<b>%1</b><br>%2")
                   .arg(row.name.toHtmlEscaped(), all_choices(space, found).toHtmlEscaped()) +
               Provenance::device(found.estimate, found.plan) + Provenance::step(found.estimate) +
               Provenance::rates(found.estimate, found.plan);
    const auto set = [&](Measure m, double value) {
      row.measures[static_cast<std::size_t>(m)] = value;
    };
    set(Measure::memory, static_cast<double>(found.estimate.device.point));
    set(Measure::host_memory, static_cast<double>(found.estimate.verdict.host.needed));
    set(Measure::tokens, t.tokens_per_second);
    set(Measure::time_per_token, t.tokens_per_second > 0 ? 1e6 / t.tokens_per_second : 0);
    set(Measure::dollars, dollars.value_or(0));
    set(Measure::gpus, static_cast<double>(found.plan.cluster.world()));
    out.push_back(std::move(row));
  }
  return out;
}

std::vector<Column> FoundPlans::columns(const SearchSpace& space, const std::vector<Found>& front) {
  std::vector<Column> out{
      number_column(tr("each GPU"), &FoundRow::memory, Measure::memory),
      number_column(tr("each host"), &FoundRow::host, Measure::host_memory),
      number_column(tr("step"), &FoundRow::step, Measure::time_per_token),
      number_column(tr("tokens/s"), &FoundRow::tokens, Measure::tokens),
      number_column(tr("GPUs"), &FoundRow::gpus, Measure::gpus),
      number_column(tr("$ per billion tokens"), &FoundRow::dollars, Measure::dollars)};
  const std::vector<std::size_t> axes = telling_axes(space, front);
  for (std::size_t at = 0; at < axes.size(); ++at) {
    if (space.axes[axes[at]].name == "gpus") continue;  // there is a column of them
    out.push_back({words(axis_head(space.axes[axes[at]].name)),
                   [at](const FoundRow& row, int role) -> QVariant {
                     if (role == Qt::ToolTipRole) return row.hint;
                     return role == Qt::DisplayRole || role == kValueRole
                                ? QVariant(row.choices.at(at))
                                : QVariant();
                   }});
  }
  return out;
}

QString FoundPlans::name_of(Measure measure) {
  switch (measure) {
    case Measure::memory:
      return tr("memory of each GPU");
    case Measure::host_memory:
      return tr("memory of each host");
    case Measure::tokens:
      return tr("tokens per second");
    case Measure::time_per_token:
      return tr("time per million tokens");
    case Measure::dollars:
      return tr("dollars per billion tokens");
    case Measure::gpus:
      return tr("GPUs");
  }
  return {};
}

PlotData FoundPlans::plot(const std::vector<FoundRow>& rows, Measure x, Measure y,
                          double usable_bytes, std::vector<int>& rows_of_points) {
  PlotData data;
  data.x = {name_of(x), unit_of(x), PlotScale::automatic};
  data.y = {name_of(y), unit_of(y), PlotScale::automatic};
  rows_of_points.clear();
  const auto known = [](const FoundRow& row, Measure m) {
    return row.measured_by(m) > 0 || m == Measure::host_memory;
  };
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const FoundRow& row = rows[i];
    if (!known(row, x) || !known(row, y)) continue;
    data.points.push_back({row.measured_by(x), row.measured_by(y), row.name, row.hint, 0});
    rows_of_points.push_back(static_cast<int>(i));
  }
  data.empty = rows.empty() ? tr("The best trade-offs will appear here as points.")
                            : tr("No plan has both: choose other axes.");
  data.series.push_back({});
  data.lines.push_back({front_of(data.points, less_is_better(x), less_is_better(y)), {}, true});
  data.has_names = true;
  for (const bool is_x : {true, false})
    if (usable_bytes > 0 && (is_x ? x : y) == Measure::memory)
      data.limits.push_back({is_x, usable_bytes, tr("usable memory")});
  return data;
}

}  // namespace shardplan::gui
