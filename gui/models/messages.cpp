#include "models/messages.h"

#include "models/core_words.h"
#include "models/text.h"

namespace shardplan::gui {

QString Messages::of(const Diagnostic& d) {
  QString out = said(d.message);
  if (!d.key.empty()) out = QStringLiteral("%1: %2").arg(text(d.key), out);
  if (!d.expected.empty()) out += tr("; expected %1").arg(said(d.expected));
  if (!d.nearest.empty()) out += tr("; did you mean '%1'?").arg(text(d.nearest));
  return out;
}

}  // namespace shardplan::gui
