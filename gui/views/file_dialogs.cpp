#include "views/file_dialogs.h"

#include <QFileDialog>
#include <QFileInfo>

#include "models/preferences.h"

namespace shardplan::gui {
namespace {

QString last_folder() {
  return preference(Preference::folder).toString();
}

/// What was chosen, and its folder for the next time.
QString chosen(QFileDialog& dialog) {
  if (dialog.exec() != QDialog::Accepted || dialog.selectedFiles().isEmpty()) return {};
  const QString path = dialog.selectedFiles().front();
  const bool is_folder = dialog.fileMode() == QFileDialog::Directory;
  set_preference(Preference::folder, is_folder ? path : QFileInfo(path).absolutePath());
  return path;
}

}  // namespace

QString FileDialogs::where_to_save(QWidget* parent, const QString& title, const QString& suggested,
                                   const std::vector<FileFormat>& formats) {
  QFileDialog dialog(parent, title, last_folder());
  dialog.setAcceptMode(QFileDialog::AcceptSave);  // asks before it overwrites
  dialog.setFileMode(QFileDialog::AnyFile);
  QStringList filters;
  for (const FileFormat& format : formats)
    filters.push_back(QStringLiteral("%1 (*.%2)").arg(format.name, format.suffix));
  dialog.setNameFilters(filters);
  dialog.setDefaultSuffix(formats.front().suffix);
  QObject::connect(&dialog, &QFileDialog::filterSelected, &dialog, [&](const QString& filter) {
    const qsizetype at = filters.indexOf(filter);
    if (at >= 0) dialog.setDefaultSuffix(formats[static_cast<std::size_t>(at)].suffix);
  });
  dialog.selectFile(suggested);
  return chosen(dialog);
}

QString FileDialogs::what_to_open(QWidget* parent, const QString& title) {
  QFileDialog dialog(
      parent, title, last_folder(),
      tr("Jobs and configurations (*.json *.yaml *.yml *.toml *.sh);;All files (*)"));
  dialog.setFileMode(QFileDialog::ExistingFile);
  return chosen(dialog);
}

QStringList FileDialogs::which_to_open(QWidget* parent, const QString& title) {
  QFileDialog dialog(parent, title, last_folder(), tr("JSON files (*.json);;All files (*)"));
  dialog.setFileMode(QFileDialog::ExistingFiles);
  return chosen(dialog).isEmpty() ? QStringList() : dialog.selectedFiles();
}

QString FileDialogs::folder(QWidget* parent, const QString& title) {
  QFileDialog dialog(parent, title, last_folder());
  dialog.setFileMode(QFileDialog::Directory);
  dialog.setOption(QFileDialog::ShowDirsOnly);
  return chosen(dialog);
}

}  // namespace shardplan::gui
