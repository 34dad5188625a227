#include "models/lint_session.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "job/fields.h"
#include "models/messages.h"

namespace shardplan::gui {
namespace {

constexpr const char* kConfig = "/framework/ds_config";

/// The ds_config's text: of a file beside the job, or from inside the job.
SourceText text_of(const Json& config, const std::string& directory) {
  if (!config.is_string()) return {"ds_config", config.dump(2)};
  const std::filesystem::path path = config.get<std::string>();
  return {path.string(), read_text_file((std::filesystem::path(directory) / path).string())};
}

/// What the linter wants of the job: of the framework only what a ds_config cannot say.
Json companion_of(Json job) {
  Json framework = Json::object();
  for (const auto* key : {"version", "auto"})
    if (const auto said = field_of(job, std::string("/framework/") + key)) framework[key] = *said;
  job["framework"] = std::move(framework);
  return job;
}

}  // namespace

LintSession::LintSession(Session& session, QObject* parent)
    : QObject(parent), session_(session), rows_(Findings::model(this)) {
  connect(&work_, &Background::started, this, &LintSession::changed);
  connect(&work_, &Background::failed, this, [this](const QString& why) { summary_ = why; });
  connect(&work_, &Background::finished, this, &LintSession::changed);
}

void LintSession::look() {
  if (looked_at_ == session_.answers()) return;
  looked_at_ = session_.answers();
  const Json& job = session_.document().json();
  summary_.clear();
  const auto config = field_of(job, kConfig);
  if (!config) {
    work_.cancel();
    rows_->set_rows(Findings::of(session_.answer()));
    Q_EMIT changed();
    return;
  }
  work_.start([this, config = *config, job = companion_of(job),
               directory = session_.document().directory(),
               workbench = &session_.workbench()](const Background::Control&) {
    LintRequest request;
    request.config = text_of(config, directory);
    request.job = job;
    request.directory = directory;
    request.hardware = &workbench->hardware;
    request.calibration = &workbench->calibration;
    const LintReport report = lint(request);
    return [this, report, repaired = repaired(request, report)] { take(report, repaired); };
  });
}

void LintSession::take(const LintReport& report, const Json& repaired) {
  repaired_ = repaired;
  rows_->set_rows(Findings::of(report));
  summary_ = Findings::summary(report);
}

int LintSession::fixable() const {
  int count = 0;
  for (const Finding& row : rows_->rows()) count += row.edits.empty() ? 0 : 1;
  return count;
}

void LintSession::apply(int row) {
  write(rows_->row(row).edits);
}

void LintSession::apply_all() {
  if (fixable() == 0 || repaired_.is_null()) return;
  session_.document().set(kConfig, repaired_);
}

void LintSession::write(const std::vector<Edit>& edits) {
  const auto said = field_of(session_.document().json(), kConfig);
  if (!said || edits.empty()) return;
  try {
    const SourceText source = text_of(*said, session_.document().directory());
    Json config = parse_json(source.text, source.file, JsonComments::skipped);
    shardplan::apply(edits, config);
    session_.document().set(kConfig, config);
  } catch (const InputError& e) {  // the file is gone, or was changed since
    summary_ = Messages::of(e.diagnostic());
    Q_EMIT changed();
  }
}

}  // namespace shardplan::gui
