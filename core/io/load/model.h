#pragma once
#include <string>
#include "json/document.h"
#include "model/builder.h"
namespace shardplan {
Model load_model(const Json& value, const std::string& file, const std::string& directory, const BuildOptions& options);
}
