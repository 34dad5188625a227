// JSON text to a document, with errors that say where.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace shardplan {

using Json = nlohmann::ordered_json;  // keeps the order of keys, as users wrote them

/// Limits on an input: a larger file is not a configuration.
inline constexpr std::size_t kLargestDocument = 10'000'000;
inline constexpr int kDeepestNesting = 200;

/// "//" and "/* */": no part of JSON, though some readers take them.
enum class JsonComments : std::uint8_t { refused, skipped };

/// A key that an object has twice: an error, or its last value counts.
enum class RepeatedKeys : std::uint8_t { refused, last_counts };

/// Parses `text`. `file` names it in errors. Throws InputError with line and column for malformed
/// text, and with the key for a duplicate key, too deep nesting or a too large document.
Json parse_json(std::string_view text, const std::string& file,
                JsonComments comments = JsonComments::refused,
                RepeatedKeys repeated = RepeatedKeys::refused);

/// What `over` says takes the place of what `base` says, key by key inside objects. A null is said.
void overlay(Json& base, const Json& over);

/// Reads and parses a file; throws InputError when it cannot be read.
Json read_json_file(const std::string& path);

/// The path that stands for standard input.
inline constexpr std::string_view kStandardInput = "-";

/// The file in the same folder whose name is spelt nearly alike, as a path; or "".
std::string near_file(const std::string& path);

/// The text of a file, or of standard input; throws InputError when it cannot be read or is larger
/// than a document may be.
std::string read_text_file(const std::string& path);
/// The same with a limit of its own.
std::string read_text_file(const std::string& path, std::size_t largest);

}  // namespace shardplan
