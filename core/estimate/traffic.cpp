#include "estimate/traffic.h"

#include <algorithm>

#include "base/checked.h"
#include "timing/collective_time.h"

namespace shardplan {
namespace {

TrafficLine& line_of(std::vector<TrafficLine>& traffic, std::string_view what, LinkKind link) {
  const auto line = std::find_if(traffic.begin(), traffic.end(), [&](const TrafficLine& t) {
    return t.what == what && t.link == link;
  });
  return line != traffic.end() ? *line : traffic.emplace_back(TrafficLine{what, link});
}

void add(std::int64_t& sum, std::int64_t bytes, std::int64_t times) {
  sum = checked_add(sum, checked_mul(bytes, times));
}

}  // namespace

std::vector<TrafficLine> traffic_of(const Program& program, const Cluster& cluster) {
  std::vector<TrafficLine> traffic;
  for_each_event(program, [&](const Event& event, std::int64_t times) {
    const bool collective = event.kind == Event::Kind::collective;
    if (!collective && event.kind != Event::Kind::copy) return;
    GroupShape shape = program.groups[static_cast<std::size_t>(event.group)];
    if (shape.ranks == 0) shape = {cluster.world(), cluster.nodes};
    TrafficLine& line = line_of(traffic, event.what, collective ? LinkKind::gpu : event.link);
    add(line.payload_bytes, event.bytes, times);
    add(line.count, event.count, times);
    if (!collective) {
      add(line.bytes_per_step, event.bytes, times);
      return;
    }
    add(line.bytes_per_step, bytes_sent(event.collective, event.bytes, shape.ranks), times);
    add(line.bytes_between_nodes, bytes_between_nodes(event.collective, event.bytes, shape), times);
  });
  return traffic;
}

}  // namespace shardplan
