#include "models/asked_question.h"

#include <QRegularExpression>
#include <QStringList>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/diagnostic.h"
#include "load/cluster.h"
#include "load/model.h"
#include "models/messages.h"

namespace shardplan::gui {
namespace {

/// "4 × 40 GB" and "8 x H100" are one word each.
QString joined(QString typed) {
  typed.replace(QChar(0x00d7), QLatin1Char('x'));
  static const QRegularExpression kTimes(QStringLiteral("(\\d)\\s*[x*]\\s*(?=\\w)"));
  static const QRegularExpression kSize(QStringLiteral("(\\d)\\s+(GB|GiB)\\b"),
                                        QRegularExpression::CaseInsensitiveOption);
  static const QRegularExpression kBillions(QStringLiteral("(\\d)\\s+([BM])\\b"));
  typed.replace(kTimes, QStringLiteral("\\1x"));
  typed.replace(kSize, QStringLiteral("\\1\\2"));
  return typed.replace(kBillions, QStringLiteral("\\1\\2")).simplified();
}

bool is_small_word(const QString& word) {
  static const QStringList kWords{QStringLiteral("on"),    QStringLiteral("with"),
                                  QStringLiteral("using"), QStringLiteral("a"),
                                  QStringLiteral("the"),   QStringLiteral("train"),
                                  QStringLiteral("and"),   QStringLiteral("in")};
  return kWords.contains(word, Qt::CaseInsensitive);
}

std::optional<std::string> method_of(const QString& word) {
  for (const char* method : {"full", "lora", "qlora"})
    if (word.compare(QLatin1String(method), Qt::CaseInsensitive) == 0) return method;
  return std::nullopt;
}

constexpr const char* kTyped = "question";

std::optional<Diagnostic> problem_of(const std::function<void()>& load) {
  try {
    load();
    return std::nullopt;
  } catch (const InputError& e) {
    return e.diagnostic();
  }
}

std::optional<Diagnostic> cluster_problem(const QString& word, const HardwareCatalog& hardware) {
  return problem_of([&] { load_cluster(word.toStdString(), kTyped, "cluster", hardware); });
}

std::optional<Diagnostic> model_problem(const QString& word) {
  return problem_of([&] { load_model(word.toStdString(), {kTyped, "model", ""}, {}); });
}

}  // namespace

AskedQuestion::Read AskedQuestion::read(const QString& typed, const HardwareCatalog& hardware) {
  Read out;
  std::optional<std::string> method;
  QStringList words;
  for (const QString& raw : joined(typed).split(QLatin1Char(' '), Qt::SkipEmptyParts)) {
    QString word = raw;
    while (word.endsWith(QLatin1Char(',')) || word.endsWith(QLatin1Char('?'))) word.chop(1);
    if (word.isEmpty() || is_small_word(word)) continue;
    if (const auto known = method_of(word))
      method = known;
    else
      words.push_back(word);
  }
  if (words.size() < 2) {
    out.error = tr("Name a model and a machine, such as \"7B on 4x40GB\".");
    return out;
  }
  if (words.size() > 2) {
    out.error = tr("\"%1\" is not understood: name one model and one machine, such as \"7B on "
                   "4x40GB\".")
                    .arg(words[2]);
    return out;
  }
  const bool turned = cluster_problem(words[1], hardware) && !cluster_problem(words[0], hardware);
  const QString model = words[turned ? 1 : 0], machine = words[turned ? 0 : 1];
  for (const auto& problem : {model_problem(model), cluster_problem(machine, hardware)})
    if (problem) {
      out.error = Messages::of(*problem);
      return out;
    }
  out.job = Json{{"schema", "shardplan.job/1"},
                 {"model", model.toStdString()},
                 {"cluster", machine.toStdString()},
                 {"checkpointing", "full"}};
  if (method) out.job["workload"] = Json{{"method", *method}};
  return out;
}

}  // namespace shardplan::gui
