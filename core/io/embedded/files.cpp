#include "embedded/files.h"

#include <stdexcept>

namespace shardplan {

std::string_view embedded_file(std::string_view path) {
  for (const EmbeddedFile& file : embedded_files())
    if (file.path == path) return file.bytes;
  throw std::logic_error("no embedded file " + std::string(path));
}

}  // namespace shardplan
