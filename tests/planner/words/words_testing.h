// The words of a language, as they lie in data/words.
#pragma once

#include <string>

#include "json/document.h"

namespace shardplan {

/// Of one file of a language: "report", "lint" or "window".
inline Json topic(const std::string& language, const std::string& name) {
  return read_json_file(std::string(SHARDPLAN_SOURCE_DIR) + "/data/words/" + language + "/" + name +
                        ".json");
}

}  // namespace shardplan
