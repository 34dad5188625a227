// The data files that are compiled into the library (see cmake/EmbedFiles.cmake).
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace shardplan {

struct EmbeddedFile {
  std::string_view path;   ///< below data/, for example "hardware/gpus.json"
  std::string_view bytes;  ///< of JSON: packed, for embedded_json(); of others: the file
};

std::span<const EmbeddedFile> embedded_files();

/// What a model of models/*.json is called; a model with aliases has several rows.
struct EmbeddedModelName {
  std::string_view name;   ///< as the file has it
  std::string_view path;   ///< of the file
  std::string_view entry;  ///< its entry of the list "models", packed
  bool alias = false;
};

/// By file, and then in the order of the file.
std::span<const EmbeddedModelName> embedded_model_names();

/// The bytes of one file. A missing name is a mistake of this program, and asserts.
std::string_view embedded_file(std::string_view path);

}  // namespace shardplan
