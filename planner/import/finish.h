// A recipe of everything that the files say, and what flags add, to the job it stands for.
#pragma once

#include "import/recipe.h"

namespace shardplan::importing {

/// Fills in what only follows from all files together: the framework of several processes, the
/// precision, accumulation from a batch of all GPUs. `flags` are fields that the command line sets.
/// Throws InputError for what is missing, with the flag that says it.
Json finished_job(Recipe& recipe, const Json& flags);

}  // namespace shardplan::importing
