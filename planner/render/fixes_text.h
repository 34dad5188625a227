// What would change a verdict: as a numbered list, and as JSON.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "json/document.h"
#include "questions/fixes.h"

namespace shardplan {

/// As many as a text shows.
inline constexpr std::size_t kShownFixes = 5;

/// The first few fixes: what, what it brings and costs, and how to set it.
std::string fix_lines(const std::vector<Fix>& fixes);

/// All of them.
Json fixes_json(const std::vector<Fix>& fixes);

}  // namespace shardplan
