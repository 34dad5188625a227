// The "model" of a job or a command line to a Model.
#pragma once

#include <string>

#include "json/document.h"
#include "model/builder.h"

namespace shardplan {

/// Where a model was written down, for errors and for relative paths.
struct ModelContext {
  std::string file;       ///< "job.json", "<command line>"
  std::string key;        ///< "model"
  std::string directory;  ///< relative paths start here; "": the working directory
};

/// A catalogue name, a path to a config.json or a folder with one, a size ("7B"), or an object: a
/// configuration, {"tensors": [[name, [dims]], ...]} or {"mlp": [784, 128, 10]}. Throws InputError
/// for anything else, with the nearest catalogue name for an unknown one.
Model load_model(const Json& value, const ModelContext& context, const BuildOptions& options);

/// The same for a name, path or size.
Model load_named_model(const std::string& text, const ModelContext& context,
                       const BuildOptions& options);

}  // namespace shardplan
