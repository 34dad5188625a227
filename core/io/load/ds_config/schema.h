// What DeepSpeed knows about ds_config.json: data/deepspeed/schema.json as a tree of keys.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frameworks/deepspeed/options.h"
#include "json/document.h"

namespace shardplan {

enum class DsType : std::uint8_t {
  boolean,
  integer,
  number,
  text,
  list,
  dict,
  any,
  runtime,  ///< a Python object; cannot be written in a file
};

/// What DeepSpeed does with a key that it does not know.
enum class DsUnknown : std::uint8_t {
  refused,    ///< pydantic block, extra keys forbidden
  ignored,    ///< plain dictionary
  passed_on,  ///< argument of a constructor
  open,       ///< any key belongs here
};

struct DsChange {
  DeepSpeedVersion since;
  Json value;
};

struct DsDeprecation {
  std::string replacement;  ///< path of the key to use instead, if there is one
  Json when_true;           ///< what `true` becomes there; null: the value itself moves
  bool kept = false;        ///< still read where it stands
  bool ignored = false;     ///< no longer read
  bool loses = false;       ///< silently ignored when the replacement is there too
  std::string advice;
};

/// One key, or one block (`block` set) of the file.
struct DsNode {
  std::string name;  ///< last part of the path; "*" stands for any name
  std::string path;
  bool block = false;

  std::vector<DsType> types;
  std::optional<DsType> element;  ///< of lists
  bool nullable = false;
  Json fallback;  ///< default of the newest version; null: none
  std::vector<DsChange> changes;
  std::optional<double> least, most;
  std::vector<Json> one_of;
  bool any_case = false;
  bool truth = false;  ///< asked for its truth alone: text that is not empty is true
  std::vector<std::string> applies_to;  ///< scheduler.params: the schedulers that take it
  bool required = false;

  std::vector<int> stages;  ///< ZeRO stages at which it acts; empty: all
  std::string effect;       ///< what happens at the others
  std::optional<DeepSpeedVersion> since, until;
  std::string alias_of;
  std::optional<DsDeprecation> deprecated;
  std::string trainer_rule, accelerate_rule;  ///< how "auto" is resolved; see auto_values.cpp
  std::string note;
  std::string source;  ///< files of DeepSpeed; a key has its block's

  DsUnknown unknown = DsUnknown::ignored;         ///< blocks only
  std::optional<DeepSpeedVersion> refused_since;  ///< before: ignored
  std::vector<DsNode> children;

  /// The child of that name, or the one named "*", or nullptr.
  const DsNode* child(std::string_view child_name) const;
  bool known_at(const DeepSpeedVersion& version) const;
  bool acts_at(int stage) const;
  bool takes(DsType type) const;
  DsUnknown unknown_at(const DeepSpeedVersion& version) const;
  const Json& default_at(const DeepSpeedVersion& version) const;
};

/// A key of deepspeed.init_inference(), which training does not read.
struct DsInferenceKey {
  std::string path;
  std::string scope;     ///< "inference" or "inference_v2"
  std::string training;  ///< the key that does the same in training, if there is one
};

class DsSchema {
 public:
  explicit DsSchema(const Json& schema);

  const DsNode& root() const { return root_; }
  /// A key or block by its path, with "*" where the schema has one, or nullptr.
  const DsNode* find(std::string_view path) const;
  std::span<const DsInferenceKey> inference_keys() const { return inference_keys_; }
  /// Paths of all keys (not of blocks), in the order of the file.
  std::span<const std::string> paths() const { return paths_; }
  /// Paths of the keys whose last part is `name`.
  std::vector<std::string> paths_named(std::string_view name) const;

 private:
  DsNode& place(std::string_view path);

  DsNode root_;
  std::vector<DsInferenceKey> inference_keys_;
  std::vector<std::string> paths_;
};

/// The built-in schema, parsed on first use.
const DsSchema& ds_schema();

}  // namespace shardplan
