// A change in words, one that makes a job fit or one that makes it faster: what it changes, and
// what the GPU, the host and the time are before and after.
#pragma once

#include <QCoreApplication>
#include <QString>

#include "models/session.h"

namespace shardplan::gui {

struct FixWords {
  QString what;     ///< "optimizer states on the host"
  QString verdict;  ///< with it: "FITS"
  QString effect;   ///< "38.9 GiB → 13.1 GiB of each GPU, 123 GiB of each host; 6× the time ..."
  QString hint;     ///< what is set, and where the numbers come from
  Fit fit = Fit::unknown;
};

class Fixes {
  Q_DECLARE_TR_FUNCTIONS(Fixes)

 public:
  /// `now`: what the fix changes.
  static FixWords words_of(const Fix& fix, const Answer& now);
  /// In place of a list: why it is empty.
  static QString remark(const Answer& now, bool are_being_found);
};

}  // namespace shardplan::gui
