#include "report/machines.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "render/describe.h"
#include "report/sections/sections.h"
#include "report/words.h"

namespace shardplan::report {
namespace {

using Answers = std::vector<MachineAnswer>;
using Range = std::pair<Answers::const_iterator, Answers::const_iterator>;

bool fits(const MachineAnswer& a) {
  return a.error.empty() && a.estimate.verdict.fits;
}
bool timed(const MachineAnswer& a) {
  return a.estimate.time.step_seconds > 0;
}
double speed(const MachineAnswer& a) {
  return a.estimate.time.tokens_per_second;
}

Quantity throughput(const MachineAnswer& a) {
  return {speed(a), Unit::tokens_per_second, a.estimate.time.source};
}

/// The answers about one model and method: consecutive.
std::vector<Range> groups_of(const Answers& all) {
  std::vector<Range> groups;
  for (auto first = all.begin(); first != all.end();) {
    const auto last = std::find_if(first, all.end(), [&](const MachineAnswer& a) {
      return a.model != first->model || a.method != first->method;
    });
    groups.emplace_back(first, last);
    first = last;
  }
  return groups;
}

/// Of those that fit, the one with the least of `key`; null where none has any.
template <typename Key>
const MachineAnswer* best_of(const Range& group, Key key) {
  const MachineAnswer* best = nullptr;
  for (auto a = group.first; a != group.second; ++a) {
    if (!fits(*a) || !key(*a)) continue;
    if (best == nullptr || *key(*a) < *key(*best)) best = &*a;
  }
  return best;
}

const MachineAnswer* cheapest_of(const Range& group) {
  return best_of(group, [](const MachineAnswer& a) { return a.cost.per_billion_tokens.on_demand; });
}
const MachineAnswer* fastest_of(const Range& group) {
  return best_of(group, [](const MachineAnswer& a) {
    return timed(a) ? std::optional(-speed(a)) : std::nullopt;
  });
}

Cell machine_words(const MachineAnswer& a) {
  return cluster_words(a.plan.cluster);
}

std::string model_words(const Range& group) {
  for (auto a = group.first; a != group.second; ++a)
    if (!a->name.empty()) return a->name;
  return group.first->model;
}

Table choice_table(const Answers& all) {
  Table table{
      "choice",
      message("table.choice"),
      {{"model"}, {"method"}, {"cheapest"}, {"on_demand", true}, {"fastest"}, {"throughput", true}},
      {}};
  for (const Range& group : groups_of(all)) {
    const MachineAnswer* cheapest = cheapest_of(group);
    const MachineAnswer* fastest = fastest_of(group);
    const bool any = std::any_of(group.first, group.second, fits);
    Row row{fmt::format("choice_{}", table.rows.size() + 1),
            {model_words(group), group.first->method}};
    row.cells.push_back(cheapest != nullptr ? machine_words(*cheapest)
                        : any               ? Cell()
                                            : Cell(message("machines.none")));
    row.cells.push_back(
        cheapest != nullptr
            ? money_cell(cheapest->cost, cheapest->cost.per_billion_tokens.on_demand)
            : Cell());
    row.cells.push_back(fastest != nullptr ? machine_words(*fastest) : Cell());
    row.cells.push_back(fastest != nullptr ? Cell(throughput(*fastest)) : Cell());
    table.rows.push_back(std::move(row));
  }
  return table;
}

Row machine_row(const MachineAnswer& a, std::size_t n, bool cheapest, bool whole_run) {
  const Estimate& e = a.estimate;
  const Cost& c = a.cost;
  const bool runs = fits(a);  // what does not has no speed and no price
  const auto time = [&](const Quantity& q) { return runs && timed(a) ? Cell(q) : Cell(); };
  const auto money = [&](const std::optional<double>& amount) {
    return runs ? money_cell(c, amount) : Cell();
  };
  Row row{fmt::format("machine_{}", n),
          {a.name, a.method, machine_words(a), framework_words(a.plan),
           words_of(overall(e.verdict)), count(a.plan.workload.micro_batch, Source::modelled),
           bytes(e.device.point, Source::modelled),
           bytes(e.usable_bytes, a.plan.cluster.gpu.usable_source), time(throughput(a)),
           runs && timed(a) ? error_cell(e.time.error) : Cell(),
           time({c.gpu_hours_per_billion_tokens, Unit::gpu_hours, e.time.source}),
           money(c.per_billion_tokens.on_demand), money(c.per_billion_tokens.spot)}};
  row.marked = cheapest;
  if (!whole_run) return row;
  row.cells.push_back(time({c.days.value_or(0), Unit::days, e.time.source}));
  row.cells.push_back(money(c.whole.on_demand));
  return row;
}

Table table_of_all(const Answers& all) {
  const bool whole_run =
      std::any_of(all.begin(), all.end(), [](const MachineAnswer& a) { return a.cost.days; });
  Table table{"machines",
              message("table.machines"),
              {{"model"},
               {"method"},
               {"cluster"},
               {"framework"},
               {"verdict"},
               {"micro_batch", true},
               {"gpu_needed", true},
               {"usable", true},
               {"throughput", true},
               {"step_error", true},
               {"gpu_hours", true},
               {"on_demand", true},
               {"spot", true}},
              {}};
  if (whole_run) {
    table.columns.push_back({"run_days", true});
    table.columns.push_back({"run_money", true});
  }
  for (const Range& group : groups_of(all)) {
    const MachineAnswer* cheapest = cheapest_of(group);
    for (auto a = group.first; a != group.second; ++a)
      if (a->error.empty())
        table.rows.push_back(machine_row(*a, table.rows.size() + 1, &*a == cheapest, whole_run));
  }
  return table;
}

/// Each list price once: of one node.
Table price_table(const Answers& all) {
  Table table{"prices",
              message("table.prices"),
              {{"cluster"}, {"list"}, {"hourly", true}, {"hourly_spot", true}},
              {}};
  std::set<std::string> seen;
  for (const MachineAnswer& a : all) {
    if (!a.error.empty() || !a.cost.list || !seen.insert(a.machine).second) continue;
    table.rows.push_back({fmt::format("price_{}", table.rows.size() + 1),
                          {machine_words(a), price_words(*a.cost.list),
                           money_cell(a.cost, a.cost.per_hour.on_demand),
                           money_cell(a.cost, a.cost.per_hour.spot)}});
  }
  return table;
}

Table broken_table(const Answers& all) {
  Table table{"broken", message("table.broken"), {{"job"}, {"error"}}, {}};
  for (const MachineAnswer& a : all)
    if (!a.error.empty())
      table.rows.push_back(
          {fmt::format("broken_{}", table.rows.size() + 1),
           {fmt::format("{}, {}, {}", a.model, a.method, a.machine), Phrase{a.error}}});
  return table;
}

}  // namespace

Report machines_report(const Answers& answers, const std::string& version) {
  Report report;
  report.kind = "machines";
  report.version = version;
  report.title = message("title.machines");
  report.answer = message("answer.machines",
                          {{"fits", count(std::count_if(answers.begin(), answers.end(), fits))},
                           {"asked", count(static_cast<std::int64_t>(answers.size()))}});
  report.sections.push_back({"choice", {choice_table(answers)}});
  if (Table table = table_of_all(answers); !table.rows.empty())
    report.sections.push_back(
        {"machines", {Paragraph{message("machines.meaning")}, std::move(table)}});
  if (Table table = price_table(answers); !table.rows.empty())
    report.sections.push_back({"prices", {std::move(table)}});
  if (Table table = broken_table(answers); !table.rows.empty())
    report.sections.push_back({"broken", {std::move(table)}});
  return report;
}

}  // namespace shardplan::report
