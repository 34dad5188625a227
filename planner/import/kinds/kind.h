// A kind of file that people have: how its content is told, and how it is read.
#pragma once

#include <span>
#include <string_view>

#include "import/document.h"
#include "import/recipe.h"

namespace shardplan::importing {

struct Kind {
  std::string_view name;   ///< "axolotl"
  std::string_view words;  ///< "an axolotl file"
  bool (*recognise)(const Document&);
  void (*read)(const Document&, Recipe&);
  /// It opens the files that its commands name, to lay their arguments over what those say.
  bool opens_files = false;
};

/// All kinds, the more particular ones first.
std::span<const Kind* const> kinds();

/// The kind of that name, or nullptr.
const Kind* kind_named(std::string_view name);

/// The first that recognises the document, or nullptr.
const Kind* kind_of(const Document& document);

/// Whether the document has any, or all, of these keys.
bool has_any(const Document& document, std::initializer_list<std::string_view> keys);
bool has_all(const Document& document, std::initializer_list<std::string_view> keys);

}  // namespace shardplan::importing
