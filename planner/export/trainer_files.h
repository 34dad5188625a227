// Formats of trainers' own files. Each says the plan so that an import gives it back.
#pragma once

#include "export/export.h"

namespace shardplan {

extern const ExportFormat kTrainingArgumentsFormat, kAxolotlFormat, kLlamaFactoryFormat,
    kMsSwiftFormat, kTorchtitanFormat, kNemoFormat, kNemoRlFormat, kVerlFormat, kOpenRlhfFormat,
    kOumiFormat, kLlmFoundryFormat, kOlmoFormat;

}  // namespace shardplan
