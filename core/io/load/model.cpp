#include "load/model.h"

#include <fmt/format.h>

#include <filesystem>

#include "json/given_texts.h"
#include "json/python_json.h"
#include "json/reader.h"
#include "load/catalog.h"
#include "load/model_config.h"
#include "model/architectures/plain.h"
#include "model/architectures/registry.h"

#include <nlohmann/json.hpp>

namespace shardplan {
namespace {

namespace fs = std::filesystem;

/// What a configuration without a file calls itself: where it came from, or what it is.
std::string own_name(const Json& config) {
  for (const char* key : {"_name_or_path", "model_type"})
    if (const auto name = config.find(key); name != config.end() && name->is_string())
      if (!name->get_ref<const std::string&>().empty()) return *name;
  return {};
}

Model from_config(const NamedConfig& found, const BuildOptions& options) {
  Model model = build_model(load_model_config(found.config, found.file), options);
  model.facts.name = found.name.empty() ? own_name(found.config) : found.name;
  if (found.unverified)
    model.facts.assumed.push_back(
        "the configuration: put together from other copies, the published config.json was not "
        "seen");
  return model;
}

std::int64_t dimension(const Json& value, const ModelContext& at, const std::string& key) {
  if (!value.is_number_integer() ||
      (value.is_number_unsigned() && value.get<std::uint64_t>() > 0x7fffffffffffffffULL))
    throw InputError({.file = at.file,
                      .key = key,
                      .message = describe(value),
                      .expected = "a positive integer"});
  return value.get<std::int64_t>();
}

std::vector<std::int64_t> dimensions(const Json& value, const ModelContext& at,
                                     const std::string& key) {
  if (!value.is_array())
    throw InputError({.file = at.file,
                      .key = key,
                      .message = describe(value),
                      .expected = "a list of positive integers"});
  std::vector<std::int64_t> out;
  for (std::size_t i = 0; i < value.size(); ++i)
    out.push_back(dimension(value[i], at, fmt::format("{}[{}]", key, i)));
  return out;
}

Model from_tensors(const Json& list, const ModelContext& at, const BuildOptions& options) {
  const std::string key = at.key + ".tensors";
  std::vector<NamedTensor> tensors;
  if (!list.is_array())
    throw InputError({.file = at.file,
                      .key = key,
                      .message = describe(list),
                      .expected = "a list of [name, [dims]]"});
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Json& entry = list[i];
    const std::string place = fmt::format("{}[{}]", key, i);
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string())
      throw InputError({.file = at.file,
                        .key = place,
                        .message = describe(entry),
                        .expected = "[name, [dims]]"});
    tensors.push_back({entry[0].get<std::string>(), dimensions(entry[1], at, place + "[1]")});
  }
  return tensor_list(tensors, options, at.file, key);
}

/// A special form stands alone: {"mlp": [...]} has no other keys.
void require_alone(const Json& value, const ModelContext& at, const std::string& form) {
  for (const auto& [key, entry] : value.items())
    if (key != form)
      throw InputError({.file = at.file,
                        .key = at.key + "." + key,
                        .message = fmt::format("unknown key beside '{}'", form),
                        .expected = fmt::format("only '{}'", form)});
}

/// What people have who run a model: its weights, or all of it in one file.
void refuse_weights(const fs::path& file, const ModelContext& at) {
  for (const char* ending : {".safetensors", ".gguf", ".bin", ".pt", ".pth", ".ckpt"})
    if (file.extension() == ending)
      throw InputError({.file = at.file,
                        .key = at.key,
                        .message = fmt::format("'{}' has a model's weights", file.string()),
                        .expected = "its config.json, or a catalogue name"});
}

}  // namespace

std::optional<NamedConfig> find_config(const Json& value, const ModelContext& at) {
  if (value.is_object() && !value.contains("tensors") && !value.contains("mlp"))
    return NamedConfig{value, at.file, ""};
  if (!value.is_string()) return std::nullopt;
  const auto& text = value.get_ref<const std::string&>();
  if (auto entry = find_model(text))
    return NamedConfig{std::move(entry->config), "catalogue entry " + entry->name, entry->name,
                       entry->unverified};
  if (text == kStandardInput)
    return NamedConfig{parse_python_json(read_text_file(text), text), text, text};
  fs::path path = fs::path(at.directory) / text;
  std::error_code error;
  if (text.empty() || (!is_readable(path.string()) && !fs::exists(path, error)))
    return std::nullopt;
  const bool folder = fs::is_directory(path, error);
  const fs::path file = folder ? path / "config.json" : path;
  if (folder && !is_readable(file.string()))
    throw InputError({.file = at.file,
                      .key = at.key,
                      .message = fmt::format("the folder '{}' has no config.json", text),
                      .expected = "the folder of a model, as transformers saves one, or a file"});
  refuse_weights(file, at);
  // transformers reads it with json.load.
  Json config = parse_python_json(read_text_file(file.string()), file.string());
  return NamedConfig{std::move(config), file.string(), path.string()};
}

bool is_hub_name(std::string_view name) {
  const std::size_t slash = name.find('/');
  return slash != 0 && slash != std::string_view::npos && slash + 1 < name.size() &&
         name.find('/', slash + 1) == std::string_view::npos &&
         name.find_first_of(". \\") > slash && !name.ends_with(".json");
}

bool looks_like_file(std::string_view text) {
  for (const char* ending : {".json", ".yaml", ".yml", ".toml", ".sh", ".slurm", ".py", ".ipynb"})
    if (text.ends_with(ending)) return true;
  return false;
}

Model load_named_model(const std::string& text, const ModelContext& at,
                       const BuildOptions& options) {
  if (const auto found = find_config(text, at)) return from_config(*found, options);
  if (auto model = generic_decoder(text, options, at.file, at.key)) return *std::move(model);
  throw InputError(
      {.file = at.file,
       .key = at.key,
       .message = looks_like_file(text)
                      ? fmt::format("there is no file '{}'", text)
                      : fmt::format("'{}' is no model of the catalogue and no file", text),
       .expected = is_hub_name(text)
                       ? fmt::format("a catalogue name, the path of its config.json "
                                     "(huggingface.co/{}/raw/main/config.json), or a "
                                     "size such as 7B",
                                     text)
                       : "a catalogue name, the path of a config.json, or a size such as 7B",
       .nearest = looks_like_file(text) ? near_file((fs::path(at.directory) / text).string())
                                        : nearest_model(text)});
}

Model load_model(const Json& value, const ModelContext& at, const BuildOptions& options) {
  if (value.is_string()) return load_named_model(value.get_ref<const std::string&>(), at, options);
  if (!value.is_object())
    throw InputError({.file = at.file,
                      .key = at.key,
                      .message = describe(value),
                      .expected = "a catalogue name, a path, a size or an object"});
  if (value.contains("tensors")) {
    require_alone(value, at, "tensors");
    return from_tensors(value.at("tensors"), at, options);
  }
  if (value.contains("mlp")) {
    require_alone(value, at, "mlp");
    const std::string key = at.key + ".mlp";
    return perceptron(dimensions(value.at("mlp"), at, key), options, at.file, key);
  }
  return from_config({value, at.file, ""}, options);
}

}  // namespace shardplan
