#include "load/ds_config/edit.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "load/ds_config/values.h"

namespace shardplan {
namespace {

std::string_view block_of_key(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : path.substr(0, dot);
}

std::string_view name_in(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? path : path.substr(dot + 1);
}

/// The same object with one key under another name, in the same place.
Json renamed(const Json& object, std::string_view from, std::string_view to) {
  Json result = Json::object();
  for (const auto& [name, value] : object.items())
    result[name == from ? std::string(to) : name] = value;
  return result;
}

void rename(const Edit& edit, Json& document) {
  const Json* value = value_at(document, edit.path);
  if (value == nullptr || value_at(document, edit.to) != nullptr) return;
  const std::string_view parent = block_of_key(edit.path);
  if (parent == block_of_key(edit.to)) {
    Json block = renamed(*value_at(document, parent), name_in(edit.path), name_in(edit.to));
    if (parent.empty())
      document = std::move(block);
    else
      set_value(document, parent, std::move(block));
    return;
  }
  Json moved = *value;
  remove_value(document, edit.path);
  set_value(document, edit.to, std::move(moved));
}

}  // namespace

Edit set_key(std::string path, Json value) {
  return {Edit::Kind::set, std::move(path), std::move(value), ""};
}

Edit remove_key(std::string path) {
  return {Edit::Kind::remove, std::move(path), nullptr, ""};
}

Edit rename_key(std::string path, std::string to) {
  return {Edit::Kind::rename, std::move(path), nullptr, std::move(to)};
}

std::string to_string(const Edit& edit) {
  switch (edit.kind) {
    case Edit::Kind::remove:
      return edit.path + " removed";
    case Edit::Kind::rename:
      return fmt::format("{} renamed to {}", edit.path, edit.to);
    case Edit::Kind::set:
      break;
  }
  return fmt::format("{}: {}", edit.path, edit.value.dump());
}

void apply(const Edit& edit, Json& document) {
  switch (edit.kind) {
    case Edit::Kind::set:
      set_value(document, edit.path, edit.value);
      return;
    case Edit::Kind::remove:
      remove_value(document, edit.path);
      return;
    case Edit::Kind::rename:
      rename(edit, document);
      return;
  }
}

void apply(const std::vector<Edit>& edits, Json& document) {
  for (const Edit& edit : edits) apply(edit, document);
}

}  // namespace shardplan
