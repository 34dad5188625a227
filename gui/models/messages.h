// Diagnostics as a person reads them.
#pragma once

#include <QCoreApplication>
#include <QString>

#include "base/diagnostic.h"

namespace shardplan::gui {

class Messages {
  Q_DECLARE_TR_FUNCTIONS(Messages)

 public:
  /// What is wrong, what was expected and the nearest spelling; the key where it helps.
  static QString of(const Diagnostic& diagnostic);
};

}  // namespace shardplan::gui
