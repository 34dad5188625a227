// Values that a reader of a companion file passed over, because they have another type.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "json/document.h"

namespace shardplan {

struct MisreadKey {
  std::string path;
  Json value;
  std::string expected;  ///< "an integer"
};

}  // namespace shardplan
