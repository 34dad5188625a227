#include "models/option_field.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "models/core_words.h"
#include "models/text.h"

namespace shardplan::gui {

std::string pointer_to(std::string_view path, std::string_view key) {
  std::string pointer;
  for (const std::string_view part : {path, key})
    if (!part.empty()) pointer += "/" + std::string(part);
  std::replace(pointer.begin(), pointer.end(), '.', '/');
  return pointer;
}

Json json_of(const QVariant& value) {
  if (value.typeId() == QMetaType::QString) return value.toString().toStdString();
  return value.toLongLong();
}

TrainingField form_field(const OptionInfo& option, std::string_view path) {
  TrainingField field{.label = words(option.label),
                      .help = words(option.help),
                      .pointer = pointer_to(path, option.key)};
  for (const NamedValue& choice : option.choices)
    field.choices.push_back(
        {choice.label.empty() ? text(choice.name) : words(choice.label), text(choice.name)});
  field.write = [pointer = field.pointer](Session& session, const QVariant& value) {
    session.document().set(pointer, json_of(value));
  };
  return field;
}

QVariant variant_of(const OptionInfo& option, const OptionValue& value) {
  const auto* truth = std::get_if<bool>(&value);
  const auto* number = std::get_if<std::int64_t>(&value);
  if (truth == nullptr && number == nullptr) return {};
  const std::int64_t whole = number != nullptr ? *number : (*truth ? 1 : 0);
  if (option.choices.empty()) return QVariant::fromValue(qint64{whole});
  const std::string_view name = name_in(option.choices, whole);
  return text(name.empty() ? option.choices.front().name : name);
}

}  // namespace shardplan::gui
