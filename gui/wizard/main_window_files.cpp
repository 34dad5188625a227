// The window's files: opening, dropping, saving and exporting, and what may be lost by it.
#include <QClipboard>
#include <QCloseEvent>
#include <QDragEnterEvent>
#include <QFileDialog>
#include <QFileInfo>
#include <QGuiApplication>
#include <QHBoxLayout>
#include <QMenuBar>
#include <QMessageBox>
#include <QMimeData>
#include <QProgressBar>
#include <nlohmann/json.hpp>

#include "job/fields.h"
#include "models/core_words.h"
#include "models/dropped_file.h"
#include "models/messages.h"
#include "models/recent_files.h"
#include "models/saved_files.h"
#include "models/text.h"
#include "views/widgets.h"
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

bool MainWindow::attempt(const std::function<void()>& action) {
  try {
    action();
    return true;
  } catch (const InputError& e) {
    show_error(message_,
               QStringLiteral("%1: %2").arg(QFileInfo(text(e.diagnostic().file)).fileName(),
                                            Messages::of(e.diagnostic())));
    return false;
  }
}

void MainWindow::take(const QString& path) {
  attempt([&] {
    const auto kind = take_file(session_.document(), path, [this] { return may_discard(); });
    if (!kind) return;
    switch (*kind) {
      case FileKind::job:
        remember_file(path);
        return show_page(static_cast<int>(page_names().indexOf(QStringLiteral("verdict"))));
      case FileKind::model:
        return show_page(static_cast<int>(page_names().indexOf(QStringLiteral("model"))));
      case FileKind::ds_config:
        return show_page(static_cast<int>(page_names().indexOf(QStringLiteral("training"))));
    }
  });
}

void MainWindow::open(const QString& what) {
  const QString path = QFileDialog::getOpenFileName(this, tr("Open %1").arg(what), {},
                                                    tr("JSON files (*.json);;All files (*)"));
  if (!path.isEmpty()) take(path);
}

bool MainWindow::save() {
  const QString path = session_.document().path();
  return path.isEmpty() ? save_as() : attempt([&] { session_.document().save(path); });
}

bool MainWindow::save_as() {
  const QString path = QFileDialog::getSaveFileName(
      this, tr("Save the job"), QStringLiteral("job.json"), tr("JSON files (*.json)"));
  if (path.isEmpty()) return false;
  if (!attempt([&] { session_.document().save(path); })) return false;
  remember_file(path);
  return true;
}

bool MainWindow::may_discard() {
  if (!session_.document().is_modified()) return true;
  const auto answer = QMessageBox::question(
      this, tr("Unsaved job"), tr("The job was changed. Save it?"),
      QMessageBox::Save | QMessageBox::Discard | QMessageBox::Cancel, QMessageBox::Save);
  return answer == QMessageBox::Save ? save() : answer == QMessageBox::Discard;
}

void MainWindow::copy_command() {
  const JobDocument& document = session_.document();
  const bool is_saved = !document.is_modified();
  QGuiApplication::clipboard()->setText(
      text(command_line(document.json(), is_saved ? document.path().toStdString() : "")));
}

void MainWindow::export_image() {
  const QString path = QFileDialog::getSaveFileName(
      this, tr("Save a picture"), QStringLiteral("shardplan.png"), tr("Pictures (*.png)"));
  if (!path.isEmpty() && !grab().save(path))
    show_error(message_, tr("%1 cannot be written").arg(path));
}

void MainWindow::export_report() {
  if (!session_.answer().job) return;
  const QString path = QFileDialog::getSaveFileName(
      this, tr("Save a report"), QStringLiteral("report.html"),
      tr("Web pages (*.html);;Markdown (*.md);;JSON files (*.json);;Tables (*.csv)"));
  if (path.isEmpty()) return;
  work_.start([this, path, answer = session_.answer(), job = session_.document().json(),
               workbench = session_.workbench(), code = language().toStdString(),
               version = QCoreApplication::applicationVersion().toStdString()](
                  const Background::Control& control) {
    write_report(answer, job, workbench, path.toStdString(), code, version, control);
    return [this, path] { show_error(message_, tr("Wrote %1").arg(QFileInfo(path).fileName())); };
  });
}

void MainWindow::export_files() {
  if (!session_.answer().job) return;
  const QString folder = QFileDialog::getExistingDirectory(this, tr("Export these files into"));
  if (folder.isEmpty()) return;
  attempt([&] {
    write_plan_files(plan_files(session_.answer(), session_.document().json()),
                     folder.toStdString());
  });
}

void MainWindow::closeEvent(QCloseEvent* event) {
  event->setAccepted(may_discard());
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
