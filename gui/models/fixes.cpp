#include "models/fixes.h"

#include "models/core_words.h"
#include "models/provenance.h"
#include "models/text.h"
#include "models/verdict_words.h"
#include "render/describe.h"
#include "report/words.h"

namespace shardplan::gui {
FixWords Fixes::words_of(const Fix& fix, const Answer& now) {
  const Estimate& before = *now.estimate;
  const Estimate& after = fix.after;
  QStringList what, how;
  for (const Change& change : fix.changes) {
    what.push_back(words(change.what));
    how.push_back(text(change.how));
  }
  FixWords out;
  out.what = what.join(QStringLiteral(" + "));
  out.fit = overall(after.verdict);
  out.verdict = VerdictWords::brief(after.verdict);
  out.effect = tr("%1 → %2 of each GPU")
                   .arg(bytes_text(before.device.point), bytes_text(after.device.point));
  const std::int64_t host_before = before.host_per_node.total();
  const std::int64_t host_after = after.host_per_node.total();
  if (host_before != host_after)
    out.effect += tr(", %1 → %2 of each host").arg(bytes_text(host_before), bytes_text(host_after));
  if (fix.slowdown > 0.95 && fix.slowdown < 1.05) {
    out.effect += tr("; about as fast");
  } else if (fix.slowdown > 0 && fix.slowdown < 1) {
    out.effect += tr("; %1× the tokens per second").arg(QString::number(1 / fix.slowdown, 'g', 3));
  } else if (fix.slowdown > 0) {
    out.effect += tr("; %1× the time for each token").arg(QString::number(fix.slowdown, 'g', 2));
  }
  out.hint = Provenance::fix(how, fix, before);
  return out;
}

QString Fixes::remark(const Answer& now, bool are_being_found) {
  if (are_being_found) return tr("finding what would help…");
  return now.estimate->verdict.fits
             ? tr("It fits, and no single change would make it notably faster.")
             : tr("Nothing in this plan can be made lighter: it takes more GPUs or a smaller "
                  "model.");
}

}  // namespace shardplan::gui
