#include "embedded/json.h"

#include <nlohmann/json.hpp>

#include "embedded/files.h"

namespace shardplan {

Json embedded_json(std::string_view path) {
  const std::string_view text = embedded_file(path);
  return Json::parse(text.begin(), text.end());
}

}  // namespace shardplan
