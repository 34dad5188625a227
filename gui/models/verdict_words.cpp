#include "models/verdict_words.h"

#include "base/format.h"
#include "models/core_words.h"
#include "models/serving_words.h"
#include "models/text.h"
#include "render/describe.h"
#include "report/words.h"

namespace shardplan::gui {
namespace {

/// Needed of a resource of which nobody knows how much there is.
bool is_open(const ResourceVerdict& resource) {
  return resource.needed > 0 && !resource.available;
}

const ResourceVerdict& deciding(const Verdict& v) {
  return v.limited_by == "host" ? v.host : v.limited_by == "nvme" ? v.nvme : v.gpu;
}

}  // namespace

/// "": nothing is left open.
QString VerdictWords::condition(const Verdict& v) {
  if (is_open(v.host) && is_open(v.nvme))
    return tr("if each host has %1 and %2 of NVMe")
        .arg(bytes_text(v.host.needed), bytes_text(v.nvme.needed));
  if (is_open(v.host)) return tr("if each host has %1").arg(bytes_text(v.host.needed));
  if (is_open(v.nvme)) return tr("if each host has %1 of NVMe").arg(bytes_text(v.nvme.needed));
  return {};
}

QString VerdictWords::brief(const Verdict& v) {
  const QString word = words(report::words_of(overall(v)));
  if (v.limited_by == "host") return tr("%1: host memory").arg(word);
  if (v.limited_by == "nvme") return tr("%1: NVMe").arg(word);
  const QString open = condition(v);
  return v.fits && !open.isEmpty() ? tr("%1 %2").arg(word, open) : word;
}

QString VerdictWords::sentence(const Estimate& e) {
  const Verdict& v = e.verdict;
  const std::int64_t spare = deciding(v).available.value_or(0) - deciding(v).needed;
  if (v.limited_by == "host")
    return spare < 0 ? tr("No: each host lacks %1 of memory").arg(bytes_text(-spare))
                     : tr("No: the system needs the last %1 of each host's memory")
                           .arg(bytes_text(spare));
  if (v.limited_by == "nvme") return tr("No: each node lacks %1 of NVMe").arg(bytes_text(-spare));
  switch (v.gpu.fit) {
    case Fit::does_not_fit:
      return tr("No: each GPU lacks %1").arg(bytes_text(-spare));
    case Fit::tight:
      return spare >= 0 ? tr("Probably: %1 to spare on each GPU, but a run may need %2 more")
                              .arg(bytes_text(spare), bytes_text(e.device.upper - e.device.point))
                        : tr("Probably not: each GPU lacks %1, but a run may need %2 less")
                              .arg(bytes_text(-spare), bytes_text(e.device.point - e.device.least));
    case Fit::fits:
    case Fit::unknown:
      break;
  }
  if (e.serving) return tr("Yes, with %1").arg(ServingWords::sequences(*e.serving));
  const QString yes = tr("Yes, with %1 to spare on each GPU").arg(bytes_text(spare));
  const QString open = condition(v);
  return open.isEmpty() ? yes : tr("%1, %2").arg(yes, open);
}

QString VerdictWords::headroom(const Headroom& room) {
  const auto count = [](std::int64_t n) { return text(format_count(n)); };
  if (!room.probably) return {};
  if (!room.surely)
    return tr("Probably up to micro-batch %1; no size is sure to fit.").arg(count(*room.probably));
  if (room.surely == room.probably) return tr("Up to micro-batch %1.").arg(count(*room.surely));
  return tr("Surely up to micro-batch %1, probably up to %2.")
      .arg(count(*room.surely), count(*room.probably));
}

QString VerdictWords::need(const Estimate& e) {
  const ResourceVerdict& r = deciding(e.verdict);
  const QString amount =
      tr("%1 of %2").arg(bytes_text(r.needed), bytes_text(r.available.value_or(0)));
  if (e.verdict.limited_by == "host") return tr("%1 of each host").arg(amount);
  if (e.verdict.limited_by == "nvme") return tr("%1 of each node's NVMe").arg(amount);
  return tr("%1 of each GPU").arg(amount);
}

}  // namespace shardplan::gui
