// A recipe of NeMo RL with the files that it builds on, each of which says what the next leaves
// open (nemo_rl/utils/config.py).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "import/document.h"
#include "import/recipe.h"

namespace shardplan::importing::nemo_rl {

/// The program's own configuration where a command names none: "grpo_math_1B.yaml" of run_grpo.py;
/// "" for another program.
std::string_view usual_file(std::string_view program);

/// What a file of NeMo RL's own of that name says of a step, as YAML's JSON; null for others.
Json usual_values(std::string_view file);

struct Layers {
  Document whole;                ///< all of them in one, references as what they refer to
  std::vector<Document> layers;  ///< the one that counts first comes first
  std::size_t named = 1;         ///< how many of those the user names; the others are inherited

  /// The layer that `path` of the whole comes from.
  const Document& holder(std::string_view path) const;
  bool is_inherited(std::string_view path) const;
};

/// Throws InputError for a file that is wanted and is not there.
Layers layers_of(const Document& document, Recipe& recipe);

}  // namespace shardplan::importing::nemo_rl
