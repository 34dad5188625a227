// OpenRLHF's arguments, whatever a version calls them: since 0.10.2 in groups ("ds.zero_stage"),
// before that without ("zero_stage").
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "import/document.h"
#include "import/keys.h"
#include "import/recipe.h"

namespace shardplan::importing::openrlhf {

/// An argument by its older name, and what groups call it.
struct Flag {
  std::string_view name;
  std::string_view grouped = {};
  std::string_view of_model = {};  ///< where programs of one model call it otherwise
};
std::span<const Flag> flags();

/// What a command says; the names are the older ones.
class Flags {
 public:
  Flags(const Document& document, Recipe& recipe) : document_(document), recipe_(recipe) {}

  /// As the command spells it; "" where it is silent.
  std::string spelled(std::string_view name) const;
  bool says(std::string_view name) const { return !spelled(name).empty(); }
  std::int64_t integer(std::string_view name, std::int64_t otherwise) const;
  double number(std::string_view name, double otherwise) const;
  bool on(std::string_view name) const;
  std::string text(std::string_view name, std::string_view otherwise) const;
  std::vector<std::string> list(std::string_view name) const;

  Origin origin(std::string_view name) const;
  /// Remembers that a field of the job came from the argument.
  void came_from(const std::string& pointer, std::string_view name) const;
  void warn(std::string_view name, std::string reason) const;
  [[noreturn]] void refuse(std::string_view name, std::string message, std::string expected) const;

  /// Whether the command's names have no groups, whose defaults are others.
  bool older() const;
  /// "train_ppo_ray".
  std::string program() const;
  const Document& document() const { return document_; }
  Recipe& recipe() const { return recipe_; }

 private:
  const Json* value(std::string_view name) const;
  const Document& document_;
  Recipe& recipe_;
};

/// Arguments that a step does not depend on.
std::span<const IgnoredKeys> ignored_flags();

/// The engine, the precision, the optimizer and the adapters, which all of its programs have.
void compose_engine(const Flags& flags);
/// A frozen model's entry under ZeRO-3 whose parameters stay on the host; an empty one otherwise.
Json frozen_role(const Flags& flags, std::string_view offload);
/// The models, the batches and the engine of train_ppo_ray.
void compose_rl(const Flags& flags);

}  // namespace shardplan::importing::openrlhf
