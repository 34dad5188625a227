#include "import/overlay.h"

#include <algorithm>
#include <array>

namespace shardplan::importing {
namespace {

/// Of the command alone.
constexpr std::array<std::string_view, 6> kOfCommand{"environment", "config",   "config_file",
                                                     "c",           "hostfile", "job.config_file"};

void put(Document& file, const std::string& path, const Json& value) {
  Json* at = &file.value;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    if (!at->is_object()) *at = Json::object();
    at = &(*at)[path.substr(begin, end - begin)];
    begin = end + 1;
  }
  *at = value;
}

void lay_below(const Document& command, Document& file, const Json& value,
               const std::string& path) {
  if (value.is_object() && !value.empty()) {
    for (const auto& [name, one] : value.items())
      lay_below(command, file, one, path.empty() ? name : path + "." + name);
    return;
  }
  if (command.unset.contains(path))
    file.unset.insert(path);
  else
    file.unset.erase(path);
  put(file, path, value);
  file.elsewhere[path] = {command.file, command.positions.find(path).line, {}};
}

}  // namespace

void lay_over(Document& command, Document& file) {
  Json kept = Json::object();
  for (const auto& [name, value] : command.value.items())
    if (std::ranges::find(kOfCommand, name) != kOfCommand.end())
      kept[name] = value;
    else
      lay_below(command, file, value, name);
  command.value = std::move(kept);
}

}  // namespace shardplan::importing
