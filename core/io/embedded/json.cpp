#include "embedded/json.h"

#include <nlohmann/json.hpp>

#include "embedded/files.h"

namespace shardplan {

Json embedded_json(std::string_view path) {
  return unpacked(embedded_file(path));
}

Json unpacked(std::string_view bytes) {
  return Json::from_msgpack(bytes.begin(), bytes.end());
}

}  // namespace shardplan
