#include "import/kinds/nemo_rl_layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "base/diagnostic.h"
#include "import/kinds/hydra_references.h"

namespace shardplan::importing::nemo_rl {
namespace {

constexpr std::size_t kMostLayers = 50;

/// nemo_rl/utils/config.py, merge_with_override: blocks are joined key by key, unless the later one
/// has `_override_`.
void put_over(Json& below, const Json& above) {
  for (const auto& [key, value] : above.items()) {
    if (value == "???" || value == "") continue;  // "": of a variable that only a caller knows
    const auto old = below.find(key);
    const bool joins = value.is_object() && old != below.end() && old->is_object() &&
                       value.value("_override_", Json()) != true;
    if (joins) {
      put_over(*old, value);
    } else {
      below[key] = value;
      if (value.is_object()) below[key].erase("_override_");
    }
  }
}

bool is_file(const std::string& path) {
  std::error_code error;
  return !path.empty() && std::filesystem::is_regular_file(path, error);
}

std::string base_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

/// What a recipe of that name runs, where its launch script has the name of the recipe
/// (tests/test_suites/llm/common.env): "" for another script.
std::string recipe_of_script(const std::string& file) {
  std::error_code error;
  const std::string script = std::filesystem::absolute(file, error).string();
  constexpr std::string_view kScripts = "tests/test_suites/";
  const std::size_t at = script.rfind(kScripts);
  if (at == script.npos || !script.ends_with(".sh")) return {};
  const std::string name = script.substr(at + kScripts.size());
  return script.substr(0, at) + "examples/configs/recipes/" + name.substr(0, name.size() - 3) +
         ".yaml";
}

class Collector {
 public:
  Collector(Layers& into, Recipe& recipe) : into_(into), recipe_(recipe) {}

  void add(Document document) {
    if (into_.layers.size() >= kMostLayers)
      throw InputError({.file = document.file,
                        .key = "defaults",
                        .message = "files that build on each other without an end",
                        .expected = "a file that builds on no other"});
    const Json defaults = document.value.value("defaults", Json());
    const std::string file = document.file;
    document.value.erase("defaults");
    into_.layers.push_back(std::move(document));
    // The last of several counts.
    std::vector<std::string> names;
    if (defaults.is_string()) names.push_back(defaults);
    if (defaults.is_array())
      for (const Json& one : defaults)
        if (one.is_string()) names.push_back(one);
    std::ranges::reverse(names);
    for (const std::string& name : names) add_file(name, file, "defaults");
  }

  void add_file(const std::string& name, const std::string& from, std::string_view key) {
    const std::string path = resolved_path(name, from);
    if (is_file(path)) {
      std::vector<Document> found = read_documents(path);
      if (found.size() == 1 && !found.front().is_command()) return add(std::move(found.front()));
    }
    const Json usual = usual_values(base_name(name));
    if (usual.is_null())
      throw InputError(
          {.file = from,
           .key = std::string(key),
           .message = fmt::format("no file '{}' beside this one, in a folder above or in the "
                                  "working directory",
                                  name),
           .expected = fmt::format("NeMo RL's {}, which this file builds on", base_name(name))});
    recipe_.note({.kind = Note::Kind::assumed,
                  .file = from,
                  .key = std::string(key),
                  .field = std::string(name),
                  .reason = "the file is not here; what NeMo RL's own of this name says is taken"});
    Document document;
    document.file = name;
    document.value = usual;
    add(std::move(document));
  }

 private:
  Layers& into_;
  Recipe& recipe_;
};

/// The overrides of a command, and the file that it names or its program has.
void add_command(const Document& command, Collector& collector) {
  Document overrides = command;
  const Json named = command.value.value("config", Json());
  for (const char* key : {"config", "environment"}) overrides.value.erase(key);
  collector.add(std::move(overrides));
  if (named.is_string() && named != "") return collector.add_file(named, command.file, "--config");
  const std::string beside = recipe_of_script(command.file);
  if (is_file(beside)) return collector.add_file(base_name(beside), beside, "--config");
  if (!named.is_null())
    throw InputError({.file = command.file,
                      .key = "--config",
                      .message = "its value is a variable that the script does not set",
                      .expected = "the path of the recipe, or the recipe itself in place of the "
                                  "script"});
  const std::string usual(usual_file(command.program));
  collector.add_file("examples/configs/" + usual, command.file, "--config");
}

}  // namespace

const Document& Layers::holder(std::string_view path) const {
  const auto found = std::ranges::find_if(
      layers, [&](const Document& d) { return value_below(d.value, path) != nullptr; });
  return found == layers.end() ? layers.front() : *found;
}

bool Layers::is_inherited(std::string_view path) const {
  return std::none_of(layers.begin(), layers.begin() + static_cast<std::ptrdiff_t>(named),
                      [&](const Document& d) { return value_below(d.value, path) != nullptr; });
}

Layers layers_of(const Document& document, Recipe& recipe) {
  Layers all;
  Collector collector(all, recipe);
  if (document.is_command())
    add_command(document, collector);
  else
    collector.add(document);
  all.named = std::min<std::size_t>(document.is_command() ? 2 : 1, all.layers.size());
  all.whole.file = document.file;
  all.whole.program = document.program;
  all.whole.unset = document.unset;
  all.whole.positions = document.positions;
  all.whole.value = Json::object();
  for (auto layer = all.layers.rbegin(); layer != all.layers.rend(); ++layer)
    put_over(all.whole.value, layer->value);
  resolve_references(all.whole.value);
  return all;
}

}  // namespace shardplan::importing::nemo_rl
