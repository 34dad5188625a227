#include "render/fixes_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "render/describe.h"
#include "render/table.h"

namespace shardplan {
namespace {

/// What a change costs in time for each token, or "" when that is not known.
std::string price(const Fix& fix) {
  if (fix.slowdown <= 0) return "";
  if (fix.slowdown > 0.95 && fix.slowdown < 1.05) return "; about as fast";
  return fmt::format("; {:.2g}× the time for each token", fix.slowdown);
}

std::string outcome(const Fix& fix) {
  const Estimate& e = fix.after;
  std::string text = fmt::format("{}: {} of each GPU", verdict_words(e.verdict),
                                 format_bytes(e.device.point));
  constexpr std::int64_t kEveryHost = 4'000'000'000;  // has as much beside what runs there
  const bool unknown = e.verdict.host.fit == Fit::unknown && e.host_per_node.total() > kEveryHost;
  if (e.host_per_node.total() > 0)
    text += fmt::format(", {} of each host{}", format_bytes(e.host_per_node.total()),
                        unknown ? " if it has as much" : "");
  text += fix.gpu_saved >= 0 ? fmt::format("; saves {}", format_bytes(fix.gpu_saved))
                             : fmt::format("; {} more", format_bytes(-fix.gpu_saved));
  return text + price(fix);
}

}  // namespace

std::string fix_lines(const std::vector<Fix>& fixes) {
  constexpr std::string_view kIndent = "     ";
  std::string text;
  for (std::size_t i = 0; i < std::min(fixes.size(), kShownFixes); ++i) {
    std::vector<std::string> what;
    for (const Change& c : fixes[i].changes) what.push_back(c.what);
    text +=
        wrapped(fmt::format("{}", fmt::join(what, " + ")), fmt::format("  {}. ", i + 1), kIndent);
    text += wrapped(outcome(fixes[i]), kIndent, kIndent);
    for (const Change& c : fixes[i].changes) text += wrapped(c.how, kIndent, kIndent);
  }
  return text;
}

Json fixes_json(const std::vector<Fix>& fixes) {
  Json list = Json::array();
  for (const Fix& fix : fixes) {
    Json item;
    item["changes"] = Json::array();
    for (const Change& c : fix.changes)
      item["changes"].push_back(Json{{"what", c.what}, {"how", c.how}});
    item["saves_bytes"] = fix.gpu_saved;
    item["slowdown"] = fix.slowdown;
    item["fits"] = fix.after.verdict.fits;
    item["device_bytes"] = fix.after.device.point;
    item["host_bytes_per_node"] = fix.after.host_per_node.total();
    list.push_back(std::move(item));
  }
  return list;
}

}  // namespace shardplan
