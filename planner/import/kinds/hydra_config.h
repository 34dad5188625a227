// A configuration of Hydra's or OmegaConf's with what its program's own files say where it is
// silent, and references from one key to another.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "import/document.h"
#include "import/recipe.h"

namespace shardplan::importing {

class HydraConfig {
 public:
  HydraConfig(const Document& document, Recipe& recipe) : document_(document), recipe_(recipe) {}

  /// What the file says; nullptr where it is silent: no key, null, or "???".
  const Json* said(std::string_view path) const;
  std::int64_t integer(std::string_view path, std::int64_t otherwise) const;
  double number(std::string_view path, double otherwise) const;
  bool flag(std::string_view path, bool otherwise) const;
  std::string text(std::string_view path, std::string_view otherwise) const;

  Origin origin(std::string_view path) const;
  /// Remembers that a field of the job came from `path`.
  void came_from(const std::string& pointer, std::string_view path) const;
  [[noreturn]] void refuse(std::string_view path, std::string message, std::string expected) const;

  const Document& document() const { return document_; }
  Recipe& recipe() const { return recipe_; }

 private:
  const Document& document_;
  Recipe& recipe_;
};

}  // namespace shardplan::importing
