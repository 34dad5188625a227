// The nearest valid spelling of a name that is not known.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shardplan {

/// The candidate with the smallest edit distance (insert, delete, substitute, swap of neighbours;
/// case, '-', '_' and spaces do not count), or "" when nothing is near: more than a third of the
/// longer name differs. Ties go to the earlier candidate.
std::string nearest(std::string_view name, std::span<const std::string> candidates);
std::string nearest(std::string_view name, std::span<const std::string_view> candidates);

/// The candidate that has `name` as whole words of it ("batch" in "micro_batch"): the shortest that
/// begins with them, or else the only one; "" when there is none, or `name` has under four letters.
std::string with_words(std::string_view name, std::span<const std::string> candidates);

/// Letters to insert, delete, substitute or swap with their neighbour until two names are the same;
/// case, '-', '_' and spaces do not count.
std::size_t spelling_distance(std::string_view a, std::string_view b);

/// Lower case without '-', '_', '.' and spaces: how names are compared.
std::string normalized(std::string_view name);

}  // namespace shardplan
