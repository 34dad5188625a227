// A question as people type it: "7B on 4x40GB", "llama-3.1-8b on 8xH100 with LoRA".
#pragma once

#include <QCoreApplication>
#include <QString>
#include <nlohmann/json.hpp>

#include "hardware/catalog.h"
#include "json/document.h"

namespace shardplan::gui {

class AskedQuestion {
  Q_DECLARE_TR_FUNCTIONS(AskedQuestion)

 public:
  struct Read {
    Json job;       ///< null where something is wrong or missing
    QString error;  ///< what, in words
  };
  /// A model, "on" and a machine, and maybe "with" a method, in any order of machine and model
  /// where "on" is left out. A path of a model's config.json is a model.
  static Read read(const QString& typed, const HardwareCatalog& hardware);
};

}  // namespace shardplan::gui
