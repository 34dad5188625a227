// Options whose value is a member of a structure: option<&Plan::workload, &Workload::micro_batch>.
#pragma once

#include <optional>
#include <type_traits>
#include <utility>

#include "options/option.h"

namespace shardplan {
namespace detail {

template <typename T>
struct MemberPointer;
template <typename Owner, typename T>
struct MemberPointer<T Owner::*> {
  using owner = Owner;
  using value = T;
};

template <auto First, auto...>
struct FirstOf {
  using owner = typename MemberPointer<decltype(First)>::owner;
};
template <auto... Path>
using RootOf = typename FirstOf<Path...>::owner;

template <auto First, auto... Rest>
struct LastOf {
  using type = typename LastOf<Rest...>::type;
};
template <auto Last>
struct LastOf<Last> {
  using type = typename MemberPointer<decltype(Last)>::value;
};

template <typename T>
struct Unwrapped {
  using type = T;
  static constexpr bool is_optional = false;
};
template <typename T>
struct Unwrapped<std::optional<T>> {
  using type = T;
  static constexpr bool is_optional = true;
};

/// The block that is there, or one with its defaults.
template <typename T>
const T& inside(const T& block) {
  return block;
}
template <typename T>
const T& inside(const std::optional<T>& block) {
  static const T kDefaults{};
  return block ? *block : kDefaults;
}
template <typename T>
T& inside(T& block) {
  return block;
}
template <typename T>
T& inside(std::optional<T>& block) {
  return block ? *block : block.emplace();
}

template <auto First, auto... Rest, typename Owner>
auto& reach(Owner& owner) {
  if constexpr (sizeof...(Rest) == 0)
    return owner.*First;
  else
    return reach<Rest...>(inside(owner.*First));
}

template <typename T>
constexpr OptionKind kind_of() {
  if constexpr (std::is_same_v<T, bool>) return OptionKind::boolean;
  if constexpr (std::is_enum_v<T>) return OptionKind::choice;
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) return OptionKind::integer;
  if constexpr (std::is_floating_point_v<T>) return OptionKind::number;
  if constexpr (std::is_same_v<T, std::string>) return OptionKind::text;
  if constexpr (std::is_same_v<T, std::vector<std::string>>) return OptionKind::texts;
  if constexpr (std::is_same_v<T, std::vector<std::int64_t>>) return OptionKind::integers;
}

template <typename T>
OptionValue value_of(const T& value) {
  if constexpr (std::is_enum_v<T> || (std::is_integral_v<T> && !std::is_same_v<T, bool>))
    return static_cast<std::int64_t>(value);
  else
    return value;
}
template <typename T>
OptionValue value_of(const std::optional<T>& value) {
  return value ? value_of(*value) : OptionValue();
}

template <typename T>
T value_from(const OptionValue& value) {
  if constexpr (std::is_enum_v<T> || (std::is_integral_v<T> && !std::is_same_v<T, bool>)) {
    return static_cast<T>(std::get<std::int64_t>(value));
  } else if constexpr (std::is_same_v<T, bool>) {  // also as one of two names
    const auto* number = std::get_if<std::int64_t>(&value);
    return number == nullptr ? std::get<bool>(value) : *number != 0;
  } else {
    return std::get<T>(value);
  }
}

}  // namespace detail

/// Where the member at the end of `Path` is kept. Optional blocks on the way count as their
/// defaults where they are not there, and are made when something inside of them is set.
template <auto... Path>
constexpr OptionAccess<detail::RootOf<Path...>> member() {
  using Root = detail::RootOf<Path...>;
  using Member = typename detail::LastOf<Path...>::type;
  return {.get = [](const Root& root) { return detail::value_of(detail::reach<Path...>(root)); },
          .set =
              [](Root& root, const OptionValue& value) {
                if constexpr (detail::Unwrapped<Member>::is_optional) {
                  if (std::holds_alternative<std::monostate>(value)) {
                    detail::reach<Path...>(root).reset();
                    return;
                  }
                }
                detail::reach<Path...>(root) =
                    detail::value_from<typename detail::Unwrapped<Member>::type>(value);
              }};
}

/// An option that is the member at the end of `Path`. Its kind follows from the member's type; a
/// bool with choices is one of two names.
template <auto... Path>
constexpr Option<detail::RootOf<Path...>> option(OptionInfo info,
                                                 OptionRules<detail::RootOf<Path...>> rules = {}) {
  using Member = typename detail::LastOf<Path...>::type;
  if (info.kind != OptionKind::dtype)
    info.kind = info.choices.empty() ? detail::kind_of<typename detail::Unwrapped<Member>::type>()
                                     : OptionKind::choice;
  return {info, member<Path...>(), rules};
}

/// An option that code of its own reads and writes: it says more than one value, or needs what is
/// not in the job. `access.get` may tell what holds when it is left open.
template <typename Root>
constexpr Option<Root> special(OptionInfo info, OptionAccess<Root> access = {}) {
  return {info, access, {}};
}

}  // namespace shardplan
