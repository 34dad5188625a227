#include "models/option_rows.h"

#include <QLocale>
#include <QStringList>
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/quantity.h"
#include "job/fields.h"
#include "load/options.h"
#include "lowering/rlhf/roles.h"
#include "models/core_words.h"
#include "models/messages.h"
#include "models/option_field.h"
#include "models/text.h"
#include "options/groups.h"
#include "options/tables.h"
#include "options/words.h"

namespace shardplan::gui {
namespace {

constexpr std::array kIdlePlaces{
    NamedValue{"gpu", static_cast<std::int64_t>(Idle::gpu), "all on the GPU"},
    NamedValue{"parameters", static_cast<std::int64_t>(Idle::parameters), "parameters on the host"},
    NamedValue{"optimizer", static_cast<std::int64_t>(Idle::optimizer), "optimizer on the host"},
    NamedValue{"host", static_cast<std::int64_t>(Idle::host), "all on the host"}};
constexpr OptionInfo kIdle{.key = "idle",
                           .help = "what of the model waits on the host outside of its phases",
                           .kind = OptionKind::choice,
                           .choices = kIdlePlaces};

/// Those that a job with that plan has; `before`: the pointer of what says them.
void add(std::vector<OptionRow>& rows, const ScopedOptions& options, const Plan& plan,
         std::string_view before) {
  if (!options.scope.of_run || !applies(options.scope, plan)) return;
  const OptionGroup& group = options.group;
  for (const ListedOption& option : group.options)
    if (option.info->kind != OptionKind::block)
      rows.push_back({option.info, std::string(before) + pointer_to(group.path, option.info->key),
                      option.fallback});
}

/// "2 of 3": the text as the option's kind of value; as it is where it is none.
Json parsed(const OptionInfo& option, const std::string& typed) {
  const auto number = [&](const std::string& word) -> Json {
    const auto amount = parse_quantity(word, option.magnitude);
    if (!amount) return word;
    const auto whole = static_cast<std::int64_t>(*amount);
    return static_cast<double>(whole) == *amount ? Json(whole) : Json(*amount);
  };
  const auto list = [&](auto item) {
    Json values = Json::array();
    for (const QString& part : text(typed).split(QLatin1Char(',')))
      values.push_back(item(part.trimmed().toStdString()));
    return values;
  };
  switch (option.kind) {
    case OptionKind::boolean:
      return typed == "true" ? Json(true) : typed == "false" ? Json(false) : Json(typed);
    case OptionKind::integer:
    case OptionKind::number:
      return number(typed);
    case OptionKind::texts:
      return list([](const std::string& word) { return Json(word); });
    case OptionKind::integers:
      return list(number);
    case OptionKind::text:
    case OptionKind::choice:
    case OptionKind::dtype:
    case OptionKind::block:
      break;
  }
  return typed;
}

/// Takes a field away, and the objects above it that say nothing without it: an engine that no
/// option describes is none. "compile" stands for itself.
void leave_open(Json& job, const std::string& pointer) {
  set_field(job, pointer, nullptr);
  const std::string above = pointer.substr(0, pointer.rfind('/'));
  if (above.empty() || above == "/compile") return;
  const auto left = field_of(job, above);
  if (left && left->is_object() && left->empty()) leave_open(job, above);
}

QString words_of(const Json& value) {
  if (value.is_string()) return text(value.get<std::string>());
  if (value.is_number_integer()) return QLocale().toString(value.get<qlonglong>());
  if (!value.is_array()) return text(value.dump());
  QStringList parts;
  for (const Json& item : value) parts += words_of(item);
  return parts.join(QStringLiteral(", "));
}

}  // namespace

std::vector<OptionRow> option_rows(const Job& job) {
  static const std::vector<ScopedOptions> kAll = all_scoped_options();
  std::vector<OptionRow> rows;
  for (const ScopedOptions& options : kAll) add(rows, options, job.plan, "");
  if (!job.rlhf) return rows;
  for (const Role& role : job.rlhf->roles) {
    if (role.kind == RoleKind::actor) continue;  // says what the job says
    const std::string own = "/workload/models/" + std::string(name_of(role.kind));
    rows.push_back({&info_of(job_option_table(), "model"), own + "/model", {}});
    rows.push_back({&kIdle, own + "/idle", std::int64_t{0}});
    rows.push_back({&info_of(rlhf_table(), "token_budget"), own + "/token_budget", {}});
    for (const ScopedOptions& options : kAll)
      if (options.scope.of_each_model) add(rows, options, role.plan, own);
  }
  return rows;
}

OptionsModel::OptionsModel(Session& session, QObject* parent)
    : QAbstractTableModel(parent), session_(session) {}

void OptionsModel::refresh() {
  const std::optional<Job>& job = session_.answer().job;
  std::vector<OptionRow> rows = job ? option_rows(*job) : rows_;
  const bool same =
      std::equal(rows.begin(), rows.end(), rows_.begin(), rows_.end(),
                 [](const OptionRow& a, const OptionRow& b) { return a.pointer == b.pointer; });
  if (same) {
    if (!rows_.empty()) Q_EMIT dataChanged(index(0, 0), index(rowCount() - 1, kColumns - 1));
    return;
  }
  beginResetModel();
  rows_ = std::move(rows);
  endResetModel();
}

int OptionsModel::row_of(std::string_view pointer) const {
  const auto at = std::find_if(rows_.begin(), rows_.end(),
                               [&](const OptionRow& row) { return row.pointer == pointer; });
  return at == rows_.end() ? -1 : static_cast<int>(at - rows_.begin());
}

QString OptionsModel::range(const OptionInfo& option) {
  if (!option.choices.empty() || option.kind == OptionKind::boolean) {
    QStringList names;
    for (const NamedValue& choice : option.choices) names += text(choice.name);
    if (names.isEmpty()) names = {QStringLiteral("true"), QStringLiteral("false")};
    return names.join(QStringLiteral(", "));
  }
  constexpr double kAnyNumber = 1e15;  // beyond it a bound says nothing
  const auto bounds = [](double least, double most) {
    const auto number = [](double value) { return QLocale().toString(value, 'g', 15); };
    if (least > -kAnyNumber && most < kAnyNumber)
      return tr("%1 to %2").arg(number(least), number(most));
    return least > -kAnyNumber ? tr("at least %1").arg(number(least)) : QString();
  };
  if (option.kind == OptionKind::integer || option.kind == OptionKind::integers)
    return bounds(static_cast<double>(option.integers.least),
                  static_cast<double>(option.integers.most));
  return option.kind == OptionKind::number ? bounds(option.numbers.least, option.numbers.most)
                                           : QString();
}

QString OptionsModel::open_words(const OptionRow& row) {
  const std::string_view rule = row.info->default_text;
  QString value = rule.empty() ? text(in_words(*row.info, row.fallback)) : words(rule);
  value.remove(QLatin1Char('`')).remove(QLatin1Char('*'));
  return value.isEmpty() ? tr("left open") : tr("left open: %1").arg(value);
}

QString OptionsModel::value_of(const OptionRow& row) const {
  const auto said = field_of(session_.document().json(), row.pointer);
  if (!said) return {};
  if (said->is_object())  // "compile": {"mode": ...} is "true" with more said
    return row.info->kind == OptionKind::boolean ? QStringLiteral("true") : QString();
  return words_of(*said);
}

QString OptionsModel::error_of(const OptionRow& row) const {
  const std::optional<Diagnostic>& error = session_.answer().error;
  std::string key = row.pointer.substr(1);
  std::replace(key.begin(), key.end(), '/', '.');
  return error && error->key == key ? Messages::of(*error) : QString();
}

int OptionsModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(rows_.size());
}

int OptionsModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : kColumns;
}

QVariant OptionsModel::data(const QModelIndex& at, int role) const {
  if (!checkIndex(at, CheckIndexOption::IndexIsValid)) return {};
  const OptionRow& option = row(at.row());
  const QString value = value_of(option);
  if (role == Qt::AccessibleTextRole)
    return QStringLiteral("%1: %2").arg(
        headerData(at.column(), Qt::Horizontal, Qt::DisplayRole).toString(),
        data(at, Qt::DisplayRole).toString());
  if (role == Qt::ToolTipRole) {
    QStringList lines{words(option.info->help)};
    if (const QString error = error_of(option); !error.isEmpty()) lines.prepend(error);
    if (const QString can_be = range(*option.info); !can_be.isEmpty()) lines += can_be;
    return lines.join(QLatin1Char('\n'));
  }
  switch (at.column()) {
    case kKey:
      if (role == Qt::DisplayRole)
        return text(option.pointer).mid(1).replace(QLatin1Char('/'), QLatin1Char('.'));
      break;
    case kValue:
      if (role == Qt::EditRole) return value;
      if (role == Qt::DisplayRole) {
        const QString shown = value.isEmpty() ? open_words(option) : value;
        return error_of(option).isEmpty() ? shown : QStringLiteral("✗ ") + shown;
      }
      break;
    default:
      if (role == Qt::DisplayRole) return words(option.info->help);
  }
  return {};
}

QVariant OptionsModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || role != Qt::DisplayRole) return {};
  return section == kKey ? tr("option") : section == kValue ? tr("value") : tr("what it is");
}

Qt::ItemFlags OptionsModel::flags(const QModelIndex& at) const {
  const Qt::ItemFlags usual = QAbstractTableModel::flags(at);
  return at.column() == kValue ? usual | Qt::ItemIsEditable : usual;
}

bool OptionsModel::setData(const QModelIndex& at, const QVariant& value, int role) {
  if (role != Qt::EditRole || at.column() != kValue) return false;
  const OptionRow option = row(at.row());  // the rows may be others after it is set
  const QString typed = value.toString().trimmed();
  if (typed == value_of(option)) return false;
  Json job = session_.document().json();
  if (typed.isEmpty())
    leave_open(job, option.pointer);
  else
    set_field(job, option.pointer, parsed(*option.info, typed.toStdString()));
  session_.document().replace(std::move(job));
  return true;
}

}  // namespace shardplan::gui
