// The window's files: opening, dropping, saving and exporting, and what may be lost by it.
#include <QClipboard>
#include <QCloseEvent>
#include <QDragEnterEvent>
#include <QFileInfo>
#include <QGuiApplication>
#include <QHBoxLayout>
#include <QMenuBar>
#include <QMessageBox>
#include <QMimeData>
#include <QProgressBar>
#include <QSaveFile>
#include <nlohmann/json.hpp>

#include "models/core_words.h"
#include "models/dropped_file.h"
#include "models/job_difference.h"
#include "models/messages.h"
#include "models/recent_files.h"
#include "models/saved_files.h"
#include "models/text.h"
#include "views/file_dialogs.h"
#include "wizard/accuracy_page.h"
#include "wizard/main_window.h"

namespace shardplan::gui {
namespace {

QString first_file(const QMimeData* data) {
  const QList<QUrl> urls = data->urls();
  return urls.size() == 1 && urls.front().isLocalFile() ? urls.front().toLocalFile() : QString();
}

}  // namespace

void MainWindow::make_file_menu() {
  QMenu* file = menuBar()->addMenu(tr("&File"));
  file->addAction(tr("&New job"), QKeySequence::New, this, [this] {
    if (may_discard()) session_.document().start_new();
  });
  file->addAction(tr("&Open…"), QKeySequence::Open, this,
                  [this] { open(tr("a job or a configuration")); });
  recent_ = file->addMenu(tr("&Recent files"));
  connect(recent_, &QMenu::aboutToShow, this, &MainWindow::fill_recent);
  file->addAction(tr("&Save"), QKeySequence::Save, this, [this] { save(); });
  file->addAction(tr("Save &as…"), QKeySequence::SaveAs, this, [this] { save_as(); });
  file->addSeparator();
  file->addAction(tr("Copy the &command line"), QKeySequence(tr("Ctrl+Shift+C")), this,
                  &MainWindow::copy_command);
  file->addAction(tr("Save a &report…"), this, &MainWindow::export_report);
  file->addAction(tr("Save a &picture of this page…"), this, &MainWindow::export_image);
  file->addSeparator();
  file->addAction(tr("&Quit"), QKeySequence::Quit, this, &QWidget::close);
}

void MainWindow::fill_recent() {
  recent_->clear();
  for (const QString& path : recent_files())
    recent_->addAction(QFileInfo(path).fileName(), this, [this, path] { take(path); })
        ->setToolTip(path);
  if (recent_->isEmpty()) recent_->addAction(tr("none"))->setEnabled(false);
}

/// Seen while a report is written.
QWidget* MainWindow::make_progress() {
  auto* whole = new QWidget(this);
  auto* progress = new QProgressBar(whole);
  progress->setRange(0, 100);
  progress->setAccessibleName(tr("Writing the report"));
  auto* cancel = new QPushButton(tr("Cancel the report"), whole);
  auto* layout = new QHBoxLayout(whole);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(progress);
  layout->addWidget(cancel);
  whole->hide();
  connect(cancel, &QPushButton::clicked, &work_, &Background::cancel);
  connect(&work_, &Background::started, whole, [whole, progress] {
    progress->setValue(0);
    whole->show();
  });
  connect(&work_, &Background::progressed, progress,
          [progress](double share) { progress->setValue(static_cast<int>(100 * share)); });
  connect(&work_, &Background::finished, whole, &QWidget::hide);
  return whole;
}

void MainWindow::tell_done(const QString& what) {
  notices_->show_notice({.text = what});
}

void MainWindow::tell_problem(const QString& what) {
  notices_->show_notice({.kind = Notice::Kind::problem, .text = what});
}

bool MainWindow::attempt(const std::function<void()>& action) {
  try {
    action();
    return true;
  } catch (const InputError& e) {
    const QString file = QFileInfo(text(e.diagnostic().file)).fileName();
    tell_problem(QStringLiteral("%1: %2").arg(file, Messages::of(e.diagnostic())));
    return false;
  }
}

void MainWindow::ask_for_machine(const QString& path) {
  waits_for_machine_ = path;
  show_page(static_cast<int>(page_names().indexOf(QStringLiteral("machine"))));
  notices_->show_notice({.text = tr("%1 does not say which GPUs it is for. Choose a machine; with "
                                    "Next the file is taken.")
                                     .arg(QFileInfo(path).fileName())});
}

void MainWindow::take(const QString& path) {
  waits_for_machine_.clear();
  attempt([&] {
    const Json before = session_.document().json();
    QStringList left_out;
    std::optional<FileKind> kind;
    try {
      kind = take_file(
          session_.document(), path, [this] { return may_discard(); }, &left_out);
    } catch (const InputError& e) {
      if (e.diagnostic().key != "cluster" || before.contains("cluster")) throw;
      return ask_for_machine(path);
    }
    if (!kind) return;
    if (*kind == FileKind::record) {
      show_page(static_cast<int>(page_names().indexOf(QStringLiteral("accuracy"))));
      return accuracy_->add_records({path});
    }
    const bool is_whole = *kind == FileKind::job || *kind == FileKind::trainer;
    const char* const shown = is_whole                   ? "verdict"
                              : *kind == FileKind::model ? "model"
                                                         : "training";
    show_page(static_cast<int>(page_names().indexOf(QLatin1String(shown))));
    if (*kind == FileKind::job) return remember_file(path);
    Notice notice{.text = tr("%1 is used").arg(QFileInfo(path).fileName())};
    for (const FieldDifference& d : differences(before, session_.document().json()))
      notice.details.push_back(JobDifference::words_of(d));
    const auto settings = notice.details.size();
    if (!left_out.isEmpty())
      notice.details.push_back(tr("not counted: %1").arg(left_out.join(QStringLiteral(", "))));
    if (notice.details.isEmpty()) return;
    notice.can_undo = true;
    if (notice.details.size() == 1) {
      notice.text += QStringLiteral(": ") + notice.details.takeFirst();
    } else {
      notice.text =
          tr("%1 is used; it changes %2 settings").arg(QFileInfo(path).fileName()).arg(settings);
    }
    notices_->show_notice(notice);
  });
}

/// A job without a file is one step of undo away.
void MainWindow::begin_with(const Json& job) {
  if (!session_.document().path().isEmpty() && !may_discard()) return;
  session_.document().start_new();
  session_.document().replace(job);
  show_page(static_cast<int>(page_names().indexOf(QStringLiteral("verdict"))));
}

void MainWindow::open(const QString& what) {
  const QString path = FileDialogs::what_to_open(this, tr("Open %1").arg(what));
  if (!path.isEmpty()) take(path);
}

bool MainWindow::save() {
  const QString path = session_.document().path();
  return path.isEmpty() ? save_as() : save_to(path);
}

bool MainWindow::save_to(const QString& path) {
  if (!attempt([&] { session_.document().save(path); })) return false;
  remember_file(path);
  tell_done(tr("Saved %1").arg(QFileInfo(path).fileName()));
  return true;
}

bool MainWindow::save_as() {
  const QString now = session_.document().path();
  const QString path = FileDialogs::where_to_save(this, tr("Save the job"),
                                                  now.isEmpty() ? QStringLiteral("job.json") : now,
                                                  {{tr("JSON files"), QStringLiteral("json")}});
  return !path.isEmpty() && save_to(path);
}

bool MainWindow::may_discard() {
  if (!session_.document().is_modified()) return true;
  const auto answer = QMessageBox::question(
      this, tr("Unsaved job"), tr("The job was changed. Save it?"),
      QMessageBox::Save | QMessageBox::Discard | QMessageBox::Cancel, QMessageBox::Save);
  return answer == QMessageBox::Save ? save() : answer == QMessageBox::Discard;
}

/// What no flags can say is saved first, so that the command can run.
void MainWindow::copy_command() {
  auto command = command_to_copy(session_.document());
  if (!command && save()) command = command_to_copy(session_.document());
  if (!command) return;
  QGuiApplication::clipboard()->setText(text(*command));
  tell_done(tr("Copied: %1").arg(text(*command)));
}

void MainWindow::export_image() {
  const QPixmap picture = grab();  // before a dialog covers it
  const QString path =
      FileDialogs::where_to_save(this, tr("Save a picture"), QStringLiteral("shardplan.png"),
                                 {{tr("Pictures"), QStringLiteral("png")}});
  if (path.isEmpty()) return;
  QSaveFile file(path);
  if (file.open(QIODevice::WriteOnly) && picture.save(&file, "PNG") && file.commit())
    tell_done(tr("Wrote %1").arg(QFileInfo(path).fileName()));
  else
    tell_problem(tr("%1 cannot be written").arg(path));
}

void MainWindow::export_report() {
  if (!session_.answer().job) return;
  const QString path =
      FileDialogs::where_to_save(this, tr("Save a report"), QStringLiteral("report.html"),
                                 {{tr("Web pages"), QStringLiteral("html")},
                                  {tr("Markdown"), QStringLiteral("md")},
                                  {tr("JSON files"), QStringLiteral("json")},
                                  {tr("Tables"), QStringLiteral("csv")}});
  if (path.isEmpty()) return;
  work_.start([this, path, answer = session_.answer(), job = session_.document().json(),
               workbench = session_.workbench(), code = language().toStdString(),
               version = QCoreApplication::applicationVersion().toStdString()](
                  const Background::Control& control) {
    write_report(answer, job, workbench, path.toStdString(), code, version, control);
    return [this, path] { tell_done(tr("Wrote %1").arg(QFileInfo(path).fileName())); };
  });
}

void MainWindow::export_files() {
  if (!session_.answer().job) return;
  const QString folder = FileDialogs::folder(this, tr("Export these files into"));
  if (folder.isEmpty()) return;
  const std::vector<PlanFile> files = plan_files(session_.answer(), session_.document().json());
  QStringList in_the_way;
  for (const std::string& name : files_in_the_way(files, folder.toStdString()))
    in_the_way.push_back(text(name));
  if (!in_the_way.isEmpty() && !may_overwrite(in_the_way, folder)) return;
  if (!attempt([&] { write_plan_files(files, folder.toStdString()); })) return;
  tell_done(tr("Wrote %1 files into %2").arg(files.size()).arg(folder));
}

bool MainWindow::may_overwrite(const QStringList& names, const QString& folder) {
  QMessageBox question(QMessageBox::Warning, tr("Files in the way"),
                       tr("%1 has other files of these names. Overwrite them?").arg(folder) +
                           QStringLiteral("\n\n") + names.join(QLatin1Char('\n')),
                       QMessageBox::Cancel, this);
  QPushButton* overwrite = question.addButton(tr("&Overwrite"), QMessageBox::AcceptRole);
  question.setDefaultButton(QMessageBox::Cancel);
  question.exec();
  return question.clickedButton() == overwrite;
}

/// What the person would not save is given up: a job that was left is brought back as it was kept.
void MainWindow::closeEvent(QCloseEvent* event) {
  event->setAccepted(may_discard());
  if (!event->isAccepted()) return;
  if (session_.document().is_modified()) session_.document().revert();
  Q_EMIT closed();
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
  if (!first_file(event->mimeData()).isEmpty()) event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent* event) {
  const QString path = first_file(event->mimeData());
  event->acceptProposedAction();
  take(path);
}

}  // namespace shardplan::gui
