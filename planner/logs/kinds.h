// The kinds of logs, one file each below kinds/.
#pragma once

#include "logs/log.h"

namespace shardplan::logs {

extern const LogKind kMegatron, kTorchtitan, kDeepSpeed, kTrainerState, kTrainerLines;

}  // namespace shardplan::logs
