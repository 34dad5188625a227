// The data files that are compiled into the library (see cmake/EmbedFiles.cmake).
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace shardplan {

struct EmbeddedFile {
  std::string_view path;  ///< below data/, for example "hardware/gpus.json"
  std::string_view text;
};

std::span<const EmbeddedFile> embedded_files();

/// The text of one file. A missing name is a mistake of this program, and asserts.
std::string_view embedded_file(std::string_view path);

}  // namespace shardplan
