// Values that may be absent, as JSON: null then.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "base/bytes.h"
#include "json/document.h"

namespace shardplan {

inline Json maybe(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

inline Json maybe(const std::optional<Bytes>& value) {
  return value ? Json(value->count()) : Json(nullptr);
}

}  // namespace shardplan
