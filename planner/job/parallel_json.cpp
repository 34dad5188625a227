#include "job/parallel_json.h"

#include <nlohmann/json.hpp>

#include "options/tables.h"
#include "save/options.h"

namespace shardplan {

Json parallel_json(const Plan& plan) {
  Json json = Json::object();
  write_options(json, parallel_table(), plan);
  return json;
}

}  // namespace shardplan
