#include "base/nearest.h"
#include "load/ds_config/rules/keys/family.h"

namespace shardplan::config_rules::keys {
namespace {

/// DeepSpeed takes any key here, so that people write keys of their own ("comment"): a name is
/// offered only where it is almost the same.
std::string almost_the_same(const MetKey& key) {
  std::string near = nearest_key(key);
  const auto last = [](std::string_view path) { return path.substr(path.rfind('.') + 1); };
  const std::string_view name = last(key.path);
  const std::size_t distance = spelling_distance(name, last(near));
  return distance <= 1 || distance * 5 <= name.size() ? near : std::string();
}

}  // namespace

KeyRule unknown_key_ignored() {
  return {
      .rule =
          {
              .id = "ds.unknown-key-ignored"_rule,
              .severity = Severity::warning,
              .title = "DeepSpeed does not know this key and ignores it",
              .explanation =
                  "At the top level and in plain dictionaries an unknown key is never looked at: "
                  "what it was meant to change stays at its default.",
              .source = kPlain,
              .advice = "Correct the spelling, or remove the key.",
          },
      .check =
          [](const MetKey& key, const Report& report) {
            if (key.problem == KeyProblem::unknown &&
                (key.unknown == DsUnknown::ignored || key.unknown == DsUnknown::open))
              report(key.path, "unknown key, which DeepSpeed ignores", "", almost_the_same(key));
          },
  };
}

}  // namespace shardplan::config_rules::keys
