// The fields of a GPU's abilities from JSON.
#pragma once

#include "hardware/abilities.h"
#include "json/reader.h"

namespace shardplan {

/// Those of kAbilityFields that the object has. Errors name the key and what was expected.
StatedAbilities read_abilities(ObjectReader& in);

}  // namespace shardplan
