// A whole run: days, money, and what checkpoints and failures take of it.
#include "report/sections/sections.h"
#include "report/words.h"

namespace shardplan::report {
namespace {

constexpr double kSecondsOfDay = 86'400;

class Rows {
 public:
  explicit Rows(Table& table) : table_(table) {}
  void add(const char* id, Cell value) {
    table_.rows.push_back({id, {message(std::string("cost.") + id), std::move(value)}});
  }

 private:
  Table& table_;
};

void add_run(Rows& rows, const Cost& c, Source source) {
  rows.add("tokens", Quantity{static_cast<std::int64_t>(*c.tokens), Unit::parameters});
  rows.add("days", Quantity{*c.days, Unit::days, source});
  rows.add("gpu_hours", Quantity{*c.gpu_hours, Unit::gpu_hours, source});
  if (c.kwh) rows.add("kwh", Quantity{*c.kwh, Unit::kwh, source});
  if (c.whole.on_demand) rows.add("on_demand", money_cell(c, c.whole.on_demand));
  if (c.whole.spot) rows.add("spot", money_cell(c, c.whole.spot));
  if (c.list) rows.add("price", price_words(*c.list));
}

void add_upkeep(Rows& rows, const Cost& c, const Cluster& cluster, Source time) {
  const Upkeep& u = *c.upkeep;
  const Source storage = cluster.checkpoint_storage->source;
  const Source failures = cluster.failures->counted_on.empty() ? Source::measured : Source::assumed;
  const Source both = weaker(weaker(storage, failures), time);
  rows.add("checkpoint", bytes(u.saved.total().count(), Source::modelled));
  rows.add("files", Phrase{std::string(u.saved.files)});
  rows.add("storage",
           Quantity{cluster.checkpoint_storage->write_bandwidth, Unit::bytes_per_second, storage});
  rows.add("save", seconds(u.save_seconds, storage));
  rows.add("load", seconds(u.load_seconds, storage));
  rows.add("failures", Quantity{u.failure_seconds / kSecondsOfDay, Unit::days, failures});
  rows.add("interval", Quantity{u.interval_seconds / kSecondsOfDay, Unit::days, both});
  rows.add("goodput", Quantity{u.goodput, Unit::fraction, both});
  rows.add("days_in_all", Quantity{*c.days / u.goodput, Unit::days, both});
  const Money all = c.whole * (1 / u.goodput);
  if (all.on_demand) rows.add("on_demand_in_all", money_cell(c, all.on_demand));
}

}  // namespace

Cell money_cell(const Cost& cost, const std::optional<double>& amount) {
  if (!amount) return {};
  return Quantity{*amount, cost.list ? Unit::dollars : Unit::money,
                  cost.list ? Source::assumed : Source::modelled};
}

Text price_words(const ListPrice& p) {
  const char* key = p.same_machine        ? "cost.list"
                    : p.of_gpus == p.gpus ? "cost.list_like"
                                          : "cost.list_share";
  return message(key, {{"provider", p.provider},
                       {"machine", p.machine},
                       {"region", p.region},
                       {"day", p.as_of},
                       {"part", count(p.of_gpus)},
                       {"gpus", count(p.gpus)}});
}

Section cost_section(const Findings& f) {
  Table table{"cost", message("table.cost"), {{"what"}, {"value", true}}, {}};
  Rows rows(table);
  const Source source = f.estimate.time.source;
  add_run(rows, f.cost, source);
  if (f.cost.upkeep) add_upkeep(rows, f.cost, f.job.plan.cluster, source);
  return {"cost", {std::move(table), Paragraph{message("cost.meaning")}}};
}

}  // namespace shardplan::report
