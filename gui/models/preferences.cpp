#include "models/preferences.h"

#include <QSettings>
#include <nlohmann/json.hpp>

#include "base/diagnostic.h"
#include "models/text.h"

namespace shardplan::gui {
namespace {

constexpr const char* kDraft = "draft/job";
constexpr const char* kDraftPath = "draft/path";
constexpr const char* kDraftAssumes = "draft/assumes_checkpointing";

const char* name_of(Preference what) {
  switch (what) {
    case Preference::language:
      return "language";
    case Preference::theme:
      return "theme";
    case Preference::geometry:
      return "window/geometry";
    case Preference::page:
      return "window/page";
    case Preference::folder:
      return "folder";
    case Preference::searched_job:
      return "search/job";
    case Preference::objective:
      return "search/objective";
  }
  return "";
}

}  // namespace

QVariant preference(Preference what) {
  return QSettings().value(QLatin1String(name_of(what)));
}

void set_preference(Preference what, const QVariant& value) {
  QSettings settings;
  if (value.isValid())
    settings.setValue(QLatin1String(name_of(what)), value);
  else
    settings.remove(QLatin1String(name_of(what)));
}

void keep_draft(const JobDocument& document) {
  QSettings settings;
  settings.setValue(QLatin1String(kDraft), text(document.json().dump()));
  settings.setValue(QLatin1String(kDraftPath), document.path());
  settings.setValue(QLatin1String(kDraftAssumes), document.assumes("/checkpointing"));
}

bool resume_draft(JobDocument& document) {
  const QSettings settings;
  const QString draft = settings.value(QLatin1String(kDraft)).toString();
  if (draft.isEmpty()) return false;
  try {
    const Json json = parse_json(draft.toStdString(), "draft", JsonComments::refused);
    if (!json.is_object()) return false;
    document.resume(json, settings.value(QLatin1String(kDraftPath)).toString(),
                    settings.value(QLatin1String(kDraftAssumes)).toBool());
    return true;
  } catch (const InputError&) {  // written by nobody that is known: a new job is as good
    return false;
  }
}

}  // namespace shardplan::gui
