#include "models/validator_run.h"

#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QStandardPaths>
#include <algorithm>

#include "models/text.h"
#include "save/file.h"

namespace shardplan::gui {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kProgram = "shardplan-validate";
constexpr int kPatience = 3000;  // milliseconds for a process to end by itself

QString string_of(const Json& event, const char* key) {
  return event.contains(key) ? text(event.at(key).get<std::string>()) : QString();
}

RunFacts facts_of(const Json& event) {
  RunFacts f;
  f.model = string_of(event, "model");
  f.device = string_of(event, "device");
  f.parameters = event.at("parameters").get<std::int64_t>();
  f.ranks = event.at("ranks").get<std::int64_t>();
  f.zero_stage = event.at("zero_stage").get<std::int64_t>();
  f.steps = event.at("steps").get<std::int64_t>();
  f.warmup = event.at("warmup").get<std::int64_t>();
  const Json& predicted = event.at("predicted");
  f.predicted_peak = predicted.at("allocated_peak").get<double>();
  if (predicted.contains("step_seconds"))
    f.predicted_seconds = predicted.at("step_seconds").get<double>();
  return f;
}

RunStep step_of(const Json& event) {
  RunStep s;
  s.step = event.at("step").get<std::int64_t>();
  if (event.at("loss").is_number()) s.loss = event.at("loss").get<double>();
  s.seconds = event.at("seconds").get<double>();
  s.peak = event.at("allocated_peak").get<double>();
  s.live = event.at("allocated").get<double>();
  s.skipped = event.at("skipped").get<bool>();
  return s;
}

RunFigure figure_of(const std::string& id, const Json& row, RunFigure::Kind kind) {
  RunFigure f;
  f.id = text(id);
  f.kind = kind;
  f.predicted = row.at("predicted").get<double>();
  f.planned = row.at("dry_run").get<double>();
  if (row.contains("measured")) f.measured = row.at("measured").get<double>();
  return f;
}

}  // namespace

ValidatorRun::ValidatorRun(QObject* parent) : QObject(parent) {
  connect(&process_, &QProcess::readyReadStandardOutput, this, &ValidatorRun::read_lines);
  connect(&process_, &QProcess::finished, this, &ValidatorRun::end);
  connect(&process_, &QProcess::errorOccurred, this, [this](QProcess::ProcessError error) {
    if (error != QProcess::FailedToStart) return;  // the others end it, and finished() tells
    failure_ = process_.errorString();
    Q_EMIT finished();
  });
}

ValidatorRun::~ValidatorRun() {
  process_.disconnect(this);
  if (!is_running()) return;
  process_.kill();
  process_.waitForFinished(kPatience);
}

QString ValidatorRun::program() {
  const QDir here(QCoreApplication::applicationDirPath());
  for (const char* beside : {"", "../validator/", "../../validator/"}) {
    const QFileInfo file(here.filePath(QLatin1String(beside) + QLatin1String(kProgram)));
    if (file.isExecutable() && file.isFile()) return file.canonicalFilePath();
  }
  return QStandardPaths::findExecutable(QLatin1String(kProgram));
}

void ValidatorRun::start(const Request& request) {
  if (is_running()) {
    process_.kill();
    process_.waitForFinished(kPatience);
  }
  facts_.reset();
  steps_.clear();
  figures_.clear();
  record_ = nullptr;
  failure_.clear();
  was_stopped_ = false;
  folder_ = std::make_unique<QTemporaryDir>();
  const QString file = folder_->filePath(QStringLiteral("job.json"));
  write_file(file.toStdString(), request.job.dump(2) + "\n");
  QStringList arguments{file, QStringLiteral("--progress"), QStringLiteral("json"),
                        QStringLiteral("--name"), request.name};
  if (request.steps > 0) arguments << QStringLiteral("--steps") << QString::number(request.steps);
  process_.start(program(), arguments);
  Q_EMIT started();
}

void ValidatorRun::stop() {
  if (!is_running()) return;
  was_stopped_ = true;
  process_.kill();  // ranks are threads: there is nothing that it could still do well
}

void ValidatorRun::read_lines() {
  bool any = false;
  while (process_.canReadLine()) {
    take(process_.readLine());
    any = true;
  }
  if (any) Q_EMIT stepped();
}

/// A line that is no event of ours is somebody else's, such as a library's greeting.
void ValidatorRun::take(const QByteArray& line) {
  const Json event = Json::parse(line.begin(), line.end(), nullptr, false);
  if (!event.is_object() || !event.contains("event")) return;
  try {
    const std::string kind = event.at("event").get<std::string>();
    if (kind == "start") facts_ = facts_of(event);
    if (kind == "step") steps_.push_back(step_of(event));
    if (kind == "done") take_result(event);
    if (kind == "error") failure_ = string_of(event, "message");
  } catch (const Json::exception& e) {  // of another version of the program
    failure_ = text(e.what());
  }
}

void ValidatorRun::take_result(Json result) {
  for (const auto& [name, kind] :
       {std::pair{"categories", RunFigure::Kind::category},
        std::pair{"phases", RunFigure::Kind::phase}, std::pair{"host", RunFigure::Kind::host}})
    if (result.contains(name))
      for (const auto& [id, row] : result.at(name).items())
        figures_.push_back(figure_of(id, row, kind));
  figures_.push_back(figure_of("peak", result.at("peak"), RunFigure::Kind::peak));
  if (result.contains("record")) record_ = std::move(result["record"]);
}

void ValidatorRun::end(int exit_code, QProcess::ExitStatus status) {
  read_lines();
  const bool went_well = status == QProcess::NormalExit && exit_code == 0;
  if (was_stopped_) {
    failure_.clear();
  } else if (!went_well && failure_.isEmpty()) {
    failure_ = QString::fromUtf8(process_.readAllStandardError()).trimmed();
    if (failure_.isEmpty())
      failure_ = QStringLiteral("%1: %2").arg(QLatin1String(kProgram)).arg(exit_code);
  }
  folder_.reset();
  Q_EMIT finished();
}

std::optional<double> ValidatorRun::median_seconds() const {
  std::vector<double> seconds;
  for (const RunStep& s : steps_)
    if (!facts_ || s.step > facts_->warmup) seconds.push_back(s.seconds);
  if (seconds.empty()) return std::nullopt;
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  return *middle;
}

}  // namespace shardplan::gui
