// The degrees of a division, and how far a framework has one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "plan/parallel.h"

namespace shardplan {

enum class Degree : std::uint8_t { tensor, pipeline, virtual_pipeline, sequence, context, expert };

/// The names used in job files.
inline constexpr std::array<std::string_view, 6> kDegreeNames{
    "tensor", "pipeline", "virtual_pipeline", "sequence", "context", "expert"};

constexpr std::string_view name_of(Degree degree) {
  return kDegreeNames[static_cast<std::size_t>(degree)];
}

constexpr std::int64_t Parallel::*member_of(Degree degree) {
  constexpr std::array kMembers{&Parallel::tensor,           &Parallel::pipeline,
                                &Parallel::virtual_pipeline, &Parallel::sequence,
                                &Parallel::context,          &Parallel::expert};
  return kMembers[static_cast<std::size_t>(degree)];
}

enum class Support : std::uint8_t {
  never,    ///< the framework has no such thing
  not_yet,  ///< it has, but no lowering covers it
  yes,
};

}  // namespace shardplan
