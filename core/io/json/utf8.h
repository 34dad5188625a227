// Whether a file is text.
#pragma once

#include <string>
#include <string_view>

namespace shardplan {

/// Throws an InputError for a binary file, and for another encoding with the place of its first
/// byte that is no UTF-8.
void require_utf8(std::string_view text, const std::string& file);

}  // namespace shardplan
