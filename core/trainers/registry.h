// All trainers.
#pragma once

#include <span>

#include "trainers/description.h"

namespace shardplan {

/// In the order in which people are shown them; the first is the one of a job that names none.
std::span<const TrainerDescription* const> trainers();

}  // namespace shardplan
