// The "model" of a job or a command line to a Model.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "json/document.h"
#include "model/builder.h"

namespace shardplan {

/// Where a model was written down, for errors and for relative paths.
struct ModelContext {
  std::string file;       ///< "job.json", "<command line>"
  std::string key;        ///< "model"
  std::string directory;  ///< relative paths start here; "": the working directory
};

/// A model's configuration and where it was found.
struct NamedConfig {
  Json config;
  std::string file;         ///< for errors: "catalogue entry gpt2"
  std::string name;         ///< catalogue name or path; empty for an object
  bool unverified = false;  ///< CatalogModel::unverified
};

/// The configuration that `value` names or is: a catalogue name, a path, an object with model_type.
/// nullopt for what has none: sizes, lists of tensors, perceptrons, unknown names.
std::optional<NamedConfig> find_config(const Json& value, const ModelContext& context);

/// A catalogue name, a path to a config.json or a folder with one, a size ("7B"), or an object: a
/// configuration, {"tensors": [[name, [dims]], ...]} or {"mlp": [784, 128, 10]}. Throws InputError
/// for anything else, with the nearest catalogue name for an unknown one.
Model load_model(const Json& value, const ModelContext& context, const BuildOptions& options);

/// "owner/name": a model of the Hub by its look, whose config.json can be had from there.
bool is_hub_name(std::string_view name);

/// The same as load_model() for a name, path or size.
Model load_named_model(const std::string& text, const ModelContext& context,
                       const BuildOptions& options);

}  // namespace shardplan
