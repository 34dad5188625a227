// Formats of trainers' own files. Each says the plan so that an import gives it back.
#pragma once

#include "export/export.h"

namespace shardplan {

extern const ExportFormat kTrainingArgumentsFormat, kAxolotlFormat, kLlamaFactoryFormat,
    kTorchtitanFormat;

/// For what a trainer's file cannot say.
[[noreturn]] void refuse_export(std::string key, std::string message, std::string expected);

}  // namespace shardplan
