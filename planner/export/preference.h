// Several models as TRL's arguments.
#pragma once

#include "export/trainer_file.h"

namespace shardplan {

/// What a workload of kind rlhf adds to TRL's arguments. Throws InputError for what TRL cannot say.
void put_preference(TrainerFile& file, const Json& asked, const Job& job);

}  // namespace shardplan
