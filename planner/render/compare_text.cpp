#include "render/compare_text.h"

#include <fmt/format.h>

#include "base/format.h"
#include "render/estimate_text.h"
#include "render/table.h"

namespace shardplan {
namespace {

std::int64_t sent(const Estimate& e, LinkKind link) {
  std::int64_t sum = 0;
  for (const TrafficLine& line : e.traffic)
    if (line.link == link) sum += line.bytes_per_step;
  return sum;
}

std::string overall(const Verdict& v) {
  if (v.fits) return "FITS";
  const Fit fit = v.limited_by == "host"   ? v.host.fit
                  : v.limited_by == "nvme" ? v.nvme.fit
                                           : v.gpu.fit;
  return fmt::format("{} ({})", verdict_word(fit), v.limited_by);
}

std::string bytes_or_dash(std::int64_t bytes) {
  return bytes == 0 ? "-" : format_bytes(bytes);
}

}  // namespace

std::string compare_text(const std::vector<Alternative>& alternatives) {
  using Align = TextTable::Align;
  TextTable table({Align::left, Align::left, Align::right, Align::right, Align::right, Align::right,
                   Align::right, Align::right, Align::right});
  table.add({"", "verdict", "GPU", "at most", "allocated", "host", "NVMe", "sent by a GPU",
             "step (assumed rates)"});
  for (const Alternative& a : alternatives) {
    const Estimate& e = a.estimate;
    table.add({(a.is_current ? "> " : "  ") + a.name, overall(e.verdict),
               format_bytes(e.device.point), format_bytes(e.device.upper),
               format_bytes(e.allocated.point), bytes_or_dash(e.host_per_node.total()),
               bytes_or_dash(e.host_per_node.nvme), bytes_or_dash(sent(e, LinkKind::gpu)),
               e.time.step_seconds > 0 ? format_seconds(e.time.step_seconds) : "-"});
  }
  return table.text("");
}

}  // namespace shardplan
