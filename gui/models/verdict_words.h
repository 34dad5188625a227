// A verdict in words: whether the job fits, under which condition, and what runs short.
#pragma once

#include <QCoreApplication>
#include <QString>

#include "estimate/estimate.h"
#include "models/headroom.h"

namespace shardplan::gui {

class VerdictWords {
  Q_DECLARE_TR_FUNCTIONS(VerdictWords)

 public:
  /// For lists and the status: "FITS", "FITS if each host has 159 GiB", "DOES NOT FIT: host
  /// memory".
  static QString brief(const Verdict& verdict);
  /// The answer to "does it fit?": "Yes, with 1.6 GiB to spare on each GPU", "No: each host lacks
  /// 50 GiB of memory".
  static QString sentence(const Estimate& estimate);
  /// "Surely up to micro-batch 1, probably up to 2."; "" where not even 1 fits.
  static QString headroom(const Headroom& headroom);
  /// What is needed of what decides: "38.9 GiB of 39.4 GiB of each GPU".
  static QString need(const Estimate& estimate);

 private:
  static QString condition(const Verdict& verdict);
};

}  // namespace shardplan::gui
