// DeepSpeed's options in words.
#pragma once

#include "frameworks/framework.h"
#include "report/report.h"

namespace shardplan {

/// "DeepSpeed ZeRO-3, optimizer on the host"
report::Text deepspeed_words(const Framework& framework);

}  // namespace shardplan
