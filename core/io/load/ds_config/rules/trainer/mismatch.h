// Values of the ds_config that HF Trainer compares with its own arguments, as in transformers:
// integrations/deepspeed.py trainer_config_finalize. One comparison of all keys, in the order of
// the schema; which of the five rules a key falls under depends on its block alone.
#pragma once

#include <span>

#include "json/document.h"
#include "load/ds_config/context.h"
#include "load/ds_config/findings.h"
#include "load/ds_config/rule.h"

namespace shardplan::config_rules::trainer {

std::span<const Rule> mismatches();

/// `document` with every "auto" resolved, before its types are checked.
void compare_with_trainer(const Json& document, const DsConfigContext& context,
                          DsFindings& findings);

}  // namespace shardplan::config_rules::trainer
