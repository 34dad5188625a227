// Weights of a Hugging Face checkpoint into a rank's parameters.
#pragma once

#include <string>

#include "engine/trainer.h"
#include "model/spec.h"

namespace shardplan::validator {

/// Fills the trainer's parameters from a file or folder. Throws InputError naming a tensor that is
/// missing or has another shape.
void load_pretrained(Trainer& trainer, const NetworkSpec& network, const std::string& path);

}  // namespace shardplan::validator
