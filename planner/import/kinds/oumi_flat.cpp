#include "import/kinds/hydra_references.h"
#include "import/kinds/oumi.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace shardplan::importing::oumi {
namespace {

/// A later one counts where two have a key: TrainingConfig.__post_init__ lays over what
/// trainer_kwargs say.
constexpr std::array<std::string_view, 5> kBlocks{"training.trainer_kwargs", "training.grpo",
                                                  "training", "model", "peft"};

bool is_block(const std::string& path) {
  return std::ranges::find(kBlocks, path) != kBlocks.end();
}

}  // namespace

Document flattened(const Document& document) {
  Document flat = document;
  resolve_references(flat.value);
  const Json whole = flat.value;
  for (const std::string_view block : kBlocks) {
    const Json* keys = value_below(whole, block);
    if (keys == nullptr || !keys->is_object()) continue;
    for (const auto& [name, value] : keys->items()) {
      const std::string path = std::string(block) + "." + name;
      if (is_block(path)) continue;
      // Both trainer and model may be compiled; only the first may be asked for.
      const std::string key = path == "model.compile" ? path : name;
      flat.value[key] = value;
      const auto over = document.elsewhere.find(path);
      flat.elsewhere[key] =
          over != document.elsewhere.end()
              ? Document::Place{over->second.file, over->second.line, path}
              : Document::Place{document.file, document.positions.find(path).line, path};
      if (document.unset.contains(path)) flat.unset.insert(key);
    }
  }
  for (const char* block : {"training", "model", "peft"}) flat.value.erase(block);
  return flat;
}

}  // namespace shardplan::importing::oumi
