// Networks from the text of a config.json, and what is refused.
#pragma once

#include <string>

#include "base/diagnostic.h"
#include "load/model_config.h"
#include "model/architectures/registry.h"

namespace shardplan {

inline Model build(const std::string& config, AttentionKind attention = AttentionKind::sdpa) {
  return build_model(load_model_config(Json::parse(config), "config.json"),
                     {.attention = attention});
}

/// The key that a configuration is refused for, or "accepted".
inline std::string refused_key(const std::string& config) {
  try {
    build(config);
  } catch (const InputError& e) {
    return e.diagnostic().key;
  }
  return "accepted";
}

}  // namespace shardplan
