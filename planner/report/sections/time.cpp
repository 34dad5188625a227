#include <array>

#include "report/sections/sections.h"
#include "report/words.h"

namespace shardplan::report {
namespace {

struct Part {
  const char* id;  ///< of the row, and a palette name
  double TimeEstimate::*seconds;
};
constexpr std::array kParts{
    Part{"compute", &TimeEstimate::compute_seconds},
    Part{"communication", &TimeEstimate::exposed_communication_seconds},
    Part{"copies", &TimeEstimate::exposed_copy_seconds},
    Part{"optimizer", &TimeEstimate::optimizer_seconds},
    Part{"idle", &TimeEstimate::idle_seconds},
};

Text part_words(const Part& part) {
  return message(std::string("time.") + part.id);
}

Chart figure(const TimeEstimate& t) {
  Bars bars;
  Bar bar{message("bar.step"), {}, std::nullopt, seconds(t.step_seconds, t.source)};
  for (const Part& part : kParts) {
    if (t.*part.seconds <= 0) continue;
    bar.parts.emplace_back(part.id, t.*part.seconds);
    bars.legend.emplace_back(part.id, part_words(part));
  }
  bars.bars.push_back(std::move(bar));
  return {"time", message("figure.time"),
          message("figure.time_description", {{"step", seconds(t.step_seconds, t.source)}}),
          std::move(bars)};
}

}  // namespace

Table time_table(const TimeEstimate& t) {
  Table table{"time", message("table.time"), {{"part"}, {"value", true}, {"share", true}}, {}};
  for (const Part& part : kParts) {
    if (t.*part.seconds <= 0) continue;
    table.rows.push_back({part.id,
                          {part_words(part), seconds(t.*part.seconds, t.source),
                           Quantity{t.*part.seconds / t.step_seconds, Unit::fraction, t.source}},
                          part.id});
  }
  const auto add = [&](const char* id, Quantity value, bool marked = false) {
    table.rows.push_back({id, {message(std::string("time.") + id), value, Cell()}, {}, marked});
  };
  add("step", seconds(t.step_seconds, t.source), true);
  add("throughput", {t.tokens_per_second, Unit::tokens_per_second, t.source});
  add("mfu", {t.mfu, Unit::fraction, t.source});
  if (t.hfu > t.mfu) add("hfu", {t.hfu, Unit::fraction, t.source});
  add("speed_of_light", seconds(t.speed_of_light_seconds, t.source));
  return table;
}

Section time_section(const Findings& f) {
  const TimeEstimate& t = f.estimate.time;
  if (t.step_seconds <= 0) return {"time", {Paragraph{message("time.unknown")}}};
  return {"time", {figure(t), time_table(t), Paragraph{message("time.meaning")}}};
}

}  // namespace shardplan::report
