#include "embedded/json.h"

#include <nlohmann/json.hpp>

#include "embedded/files.h"
#include "embedded/known_json.h"

namespace shardplan {

Json embedded_json(std::string_view path) {
  return read_known_json(embedded_file(path));
}

}  // namespace shardplan
