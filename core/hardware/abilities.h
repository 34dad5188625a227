// What a GPU can do besides its rates, as named fields: each is stated in data, or taken from an
// architecture that is like it and said to be assumed.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "hardware/catalog.h"

namespace shardplan {

struct AbilityField {
  using Member =
      std::variant<std::string GpuAbilities::*, std::int64_t GpuAbilities::*, bool GpuAbilities::*>;
  std::string_view key;  ///< in gpus.json and in a job's cluster.gpu
  Member member;
  std::string_view words;  ///< "workspaces of matrix products"
};

inline constexpr std::array kAbilityFields{
    AbilityField{"runtime", &GpuAbilities::runtime, "runtime"},
    AbilityField{"collectives", &GpuAbilities::collectives, "library of collectives"},
    AbilityField{"product_alignment_bytes", &GpuAbilities::product_alignment_bytes,
                 "alignment of matrix products"},
    AbilityField{"unaligned_batched_products", &GpuAbilities::unaligned_batched_products,
                 "unaligned products in batches"},
    AbilityField{"fp32_lanes", &GpuAbilities::fp32_lanes, "fp32 lanes"},
    AbilityField{"issue_lanes", &GpuAbilities::issue_lanes, "lanes issued a clock"},
    AbilityField{"blas_workspace_bytes", &GpuAbilities::blas_workspace_bytes,
                 "workspaces of matrix products"},
    AbilityField{"transformer_engine_workspace_bytes",
                 &GpuAbilities::transformer_engine_workspace_bytes,
                 "workspaces of Transformer Engine"},
    AbilityField{"host_memory_gbs", &GpuAbilities::host_memory_gbs, "its host's memory"}};

/// What a source states of a GPU's abilities: their values, and the keys that it states.
struct StatedAbilities {
  GpuAbilities values;
  std::vector<std::string> keys;
};

/// Takes over what `stated` states.
void state(GpuAbilities& abilities, const StatedAbilities& stated);

/// An architecture by its name; nullptr when there is none.
const Architecture* find_architecture(const HardwareCatalog& catalog, std::string_view name);

/// Gives `gpu` the abilities of its architecture, with what `stated` states in their place. Where
/// its architecture is not known, those of the likest GPU of the catalogue: of the same compute
/// capability, else of one that is spelled alike, else of the same vendor, else of the nearest
/// memory size. What is assumed is listed in gpu.assumed_abilities.
void give_abilities(Gpu& gpu, const StatedAbilities& stated, const HardwareCatalog& catalog);

/// "what is not known of MI300X-192GB is assumed to be as on Hopper: fp32 lanes, ..."; "" when
/// nothing is assumed.
std::string abilities_note(const Gpu& gpu);

}  // namespace shardplan
