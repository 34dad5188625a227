#include "report/sections/sections.h"
#include "report/words.h"

namespace shardplan::report {

Table traffic_table(const Estimate& e) {
  Table table{"traffic",
              message("table.traffic"),
              {{"what"}, {"link"}, {"bytes_per_step", true}, {"payload", true}, {"calls", true}},
              {}};
  for (const TrafficLine& line : e.traffic)
    table.rows.push_back(
        {std::string(line.what) + "/" + words_of(line.link).key.substr(5),
         {Phrase{std::string(line.what)}, words_of(line.link),
          bytes(line.bytes_per_step, Source::modelled), bytes(line.payload_bytes, Source::modelled),
          count(line.count, Source::modelled)}});
  return table;
}

Section traffic_section(const Findings& f) {
  if (f.estimate.traffic.empty()) return {"traffic", {Paragraph{message("traffic.none")}}};
  return {"traffic", {traffic_table(f.estimate), Paragraph{message("traffic.meaning")}}};
}

}  // namespace shardplan::report
