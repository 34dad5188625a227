#include "models/job_difference.h"

#include <algorithm>
#include <set>

#include "models/text.h"

namespace shardplan::gui {
namespace {

const Json& member(const Json& object, const std::string& key) {
  static const Json kNone;
  const auto it = object.find(key);
  return it == object.end() ? kNone : *it;
}

void compare(const std::string& pointer, const Json& before, const Json& after,
             std::vector<FieldDifference>& found) {
  if (before == after) return;
  if (!before.is_object() || !after.is_object()) {
    found.push_back({pointer, before, after});
    return;
  }
  std::set<std::string> keys;
  for (const Json* object : {&before, &after})
    for (const auto& [key, value] : object->items()) keys.insert(key);
  for (const std::string& key : keys)
    compare(pointer + "/" + key, member(before, key), member(after, key), found);
}

}  // namespace

std::vector<FieldDifference> differences(const Json& before, const Json& after) {
  std::vector<FieldDifference> found;
  compare("", before, after, found);
  return found;
}

QString JobDifference::name_of(const FieldDifference& difference) {
  if (difference.pointer.empty()) return tr("the job");
  return text(difference.pointer).mid(1).replace(QLatin1Char('/'), QLatin1Char('.'));
}

QString JobDifference::words_of(const FieldDifference& difference) {
  const auto value = [](const Json& said) {
    if (said.is_null()) return tr("not given");
    constexpr qsizetype kLongest = 60;  // of a whole object a person reads the beginning
    const QString whole = text(said.is_string() ? said.get<std::string>() : said.dump());
    return whole.size() <= kLongest ? whole : whole.left(kLongest) + QStringLiteral("…");
  };
  return QStringLiteral("%1: %2 → %3")
      .arg(name_of(difference), value(difference.before), value(difference.after));
}

QString JobDifference::summary(const std::vector<FieldDifference>& differences) {
  if (differences.empty()) return {};
  const QString first = name_of(differences.front());
  return differences.size() == 1 ? first
                                 : tr("%1 and %2 more").arg(first).arg(differences.size() - 1);
}

}  // namespace shardplan::gui
