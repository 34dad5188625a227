// Changes to a configuration file that keep the order of its keys.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "json/document.h"

namespace shardplan {

struct Edit {
  enum class Kind : std::uint8_t { set, remove, rename };
  Kind kind = Kind::set;
  std::string path;
  Json value;      ///< set: the new value
  std::string to;  ///< rename: the whole new path

  friend bool operator==(const Edit&, const Edit&) = default;
};

Edit set_key(std::string path, Json value);
Edit remove_key(std::string path);
Edit rename_key(std::string path, std::string to);

/// "zero_optimization.stage: 2", "fp16.enabled removed", "zero_optimization.overlap_com renamed to
/// overlap_comm"
std::string to_string(const Edit& edit);

/// A key that is renamed within its block keeps its place; a new key comes last in its block. An
/// edit of a key that is not there does nothing, nor does a renaming onto one that is.
void apply(const Edit& edit, Json& document);
void apply(const std::vector<Edit>& edits, Json& document);

}  // namespace shardplan
