#include "json/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/nearest.h"

namespace shardplan {

std::string describe(const Json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "an array";
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  constexpr std::size_t kShown = 60;
  if (text.size() > kShown) {
    std::size_t end = kShown;  // not inside a character of several bytes
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
    text = text.substr(0, end) + "...";
  }
  return text;
}

ObjectReader::ObjectReader(const Json& value, std::string file, std::string path)
    : value_(&value), file_(std::move(file)), path_(std::move(path)) {
  if (!value.is_object()) {
    throw InputError({.file = file_,
                      .key = path_,
                      .message = say("found {}", describe(value)),
                      .expected = "an object"});
  }
}

std::string ObjectReader::path_of(std::string_view key) const {
  if (path_.empty()) return std::string(key);
  return path_ + "." + std::string(key);
}

const Json* ObjectReader::find(std::string_view key) {
  constexpr std::size_t kManyKeys = 24;  // of the largest rows of the hardware catalogue
  if (known_.empty()) known_.reserve(std::min(value_->size() + 4, kManyKeys));
  known_.emplace_back(key);
  const auto it = value_->find(key);
  return it == value_->end() || it->is_null() ? nullptr : &*it;
}

bool ObjectReader::has(std::string_view key) {
  known_.emplace_back(key);
  return value_->contains(key);
}

void ObjectReader::fail(std::string_view key, Said message, Said expected,
                        std::string nearest) const {
  throw InputError({.file = file_,
                    .key = path_of(key),
                    .message = std::move(message),
                    .expected = std::move(expected),
                    .nearest = std::move(nearest)});
}

void ObjectReader::missing(std::string_view key, Said expected) const {
  const std::vector<std::string_view> only{key};
  for (const auto& [given, value] : value_->items()) {
    if (std::find(known_.begin(), known_.end(), given) != known_.end()) continue;
    if (nearest(given, std::span<const std::string_view>(only)) == key)
      fail(given, "unknown key", std::move(expected), std::string(key));
  }
  fail(key, "missing", std::move(expected));
}

std::optional<std::int64_t> ObjectReader::integer(std::string_view key, std::int64_t least,
                                                  std::int64_t most) {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  const auto refuse = [&] {
    std::string expected = "an integer";
    if (least != std::numeric_limits<std::int64_t>::min())
      expected = most == std::numeric_limits<std::int64_t>::max()
                     ? fmt::format("an integer of at least {}", least)
                     : fmt::format("an integer from {} to {}", least, most);
    fail(key, say("found {}", describe(*value)), std::move(expected));
  };
  std::int64_t result = 0;
  if (value->is_number_unsigned()) {
    const auto n = value->get<std::uint64_t>();
    if (n > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) refuse();
    result = static_cast<std::int64_t>(n);
  } else if (value->is_number_integer()) {
    result = value->get<std::int64_t>();
  } else if (value->is_number_float()) {
    const double x = value->get<double>();
    if (std::floor(x) != x || std::abs(x) > 9e18) refuse();
    result = static_cast<std::int64_t>(x);
  } else {
    refuse();
  }
  if (result < least || result > most) refuse();
  return result;
}

std::optional<double> ObjectReader::number(std::string_view key, double least, double most) {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number()) fail(key, say("found {}", describe(*value)), "a number");
  const double x = value->get<double>();
  if (!(x >= least && x <= most))
    fail(key, say("found {}", describe(*value)),
         fmt::format("a number from {} to {}", least, most));
  return x;
}

std::optional<bool> ObjectReader::boolean(std::string_view key) {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) fail(key, say("found {}", describe(*value)), "true or false");
  return value->get<bool>();
}

std::optional<std::string> ObjectReader::text(std::string_view key) {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) fail(key, say("found {}", describe(*value)), "a string");
  return value->get<std::string>();
}

std::optional<ObjectReader> ObjectReader::object(std::string_view key) {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  return ObjectReader(*value, file_, path_of(key));
}

const Json* ObjectReader::array(std::string_view key) {
  const Json* value = find(key);
  if (value != nullptr && !value->is_array())
    fail(key, say("found {}", describe(*value)), "an array");
  return value;
}

std::optional<std::string> ObjectReader::choice(std::string_view key,
                                                const std::vector<std::string>& allowed) {
  auto value = text(key);
  if (!value || std::find(allowed.begin(), allowed.end(), *value) != allowed.end()) return value;
  fail(key, fmt::format("unknown value '{}'", *value),
       fmt::format("one of {}", fmt::join(allowed, ", ")), nearest(*value, allowed));
}

void ObjectReader::finish() const {
  for (const auto& [key, value] : value_->get_ref<const Json::object_t&>()) {
    if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
    std::vector<std::string> known = known_;
    std::sort(known.begin(), known.end());
    known.erase(std::unique(known.begin(), known.end()), known.end());
    std::string near = nearest(key, std::span<const std::string>(known));
    if (near.empty()) near = with_words(key, known);
    fail(key, "unknown key", fmt::format("one of {}", fmt::join(known, ", ")), std::move(near));
  }
}

}  // namespace shardplan
