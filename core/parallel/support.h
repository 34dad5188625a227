// What each framework can divide, and what of that can be estimated.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "plan/plan.h"

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

struct FrameworkSupport {
  FrameworkKind framework;
  std::string_view name;
  std::array<Support, kDegreeNames.size()> degrees;  ///< in the order of Degree
};

/// One row a framework. A lowering that learns a degree changes its entry here.
inline constexpr std::array kFrameworkSupport{
    FrameworkSupport{FrameworkKind::single,
                     "single",
                     {Support::yes, Support::never, Support::never, Support::never, Support::never,
                      Support::yes}},
    FrameworkSupport{FrameworkKind::ddp,
                     "ddp",
                     {Support::never, Support::never, Support::never, Support::never,
                      Support::never, Support::never}},
    FrameworkSupport{FrameworkKind::fsdp2,
                     "fsdp2",
                     {Support::yes, Support::not_yet, Support::not_yet, Support::never,
                      Support::not_yet, Support::not_yet}},
    FrameworkSupport{
        FrameworkKind::deepspeed,
        "deepspeed",
        {Support::yes, Support::yes, Support::never, Support::yes, Support::never, Support::yes}},
    FrameworkSupport{
        FrameworkKind::megatron,
        "megatron",
        {Support::yes, Support::yes, Support::yes, Support::yes, Support::yes, Support::yes}},
    FrameworkSupport{FrameworkKind::native,
                     "native",
                     {Support::never, Support::never, Support::never, Support::never,
                      Support::never, Support::never}},
};

constexpr const FrameworkSupport& support_of(FrameworkKind framework) {
  for (const FrameworkSupport& row : kFrameworkSupport)
    if (row.framework == framework) return row;
  return kFrameworkSupport.front();
}

constexpr Support support_of(FrameworkKind framework, Degree degree) {
  return support_of(framework).degrees[static_cast<std::size_t>(degree)];
}

}  // namespace shardplan
