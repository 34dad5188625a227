#include "models/record_library.h"

#include <QDir>
#include <QFileInfo>
#include <QStandardPaths>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "embedded/files.h"
#include "embedded/json.h"
#include "models/text.h"
#include "save/file.h"

namespace shardplan::gui {

bool is_record(const Json& document) {
  return document.is_object() &&
         ((document.contains("job") && document.contains("measured")) ||
          (document.contains("records") && document.at("records").is_array()));
}

namespace {

/// A built-in file is named as in the sources: below data/ or beside it.
Json document_of(const std::string& file) {
  for (const EmbeddedFile& embedded : embedded_files())
    if (file == "data/" + std::string(embedded.path) || embedded.path == "../" + file)
      return unpacked(embedded.bytes);
  return read_json_file(file);
}

}  // namespace

Json job_of_record(const std::string& name, const std::string& file) {
  try {
    const Json document = document_of(file);
    if (document.contains("job")) return document.at("job");
    if (document.contains("records"))
      for (const Json& record : document.at("records"))
        if (record.value("name", std::string()) == name) return record.at("job");
  } catch (const InputError&) {  // gone since it was read
  }
  return nullptr;
}

RecordLibrary::RecordLibrary(QString folder, QObject* parent)
    : QObject(parent), folder_(std::move(folder)) {
  if (folder_.isEmpty())
    folder_ = QStandardPaths::writableLocation(QStandardPaths::AppDataLocation) +
              QStringLiteral("/records");
}

QString RecordLibrary::free_name(const QString& wanted) const {
  const QDir folder(folder_);
  QString name = wanted;
  for (int i = 2; folder.exists(name + QStringLiteral(".json")); ++i)
    name = QStringLiteral("%1-%2").arg(wanted).arg(i);
  return folder.filePath(name + QStringLiteral(".json"));
}

RecordLibrary::Added RecordLibrary::add(const QStringList& paths, const HardwareCatalog& hardware) {
  Added added;
  for (const QString& path : paths) {
    RecordList list;
    try {
      list = load_records({path.toStdString()}, hardware);
      added.bad.insert(added.bad.end(), list.bad.begin(), list.bad.end());
      if (list.records.empty()) continue;
      QDir().mkpath(folder_);
      std::vector<QString> files;
      for (const Record& r : list.records)
        if (const QString file = text(r.file); files.empty() || files.back() != file)
          files.push_back(file);
      for (const QString& file : files)
        write_file(free_name(QFileInfo(file).completeBaseName()).toStdString(),
                   read_text_file(file.toStdString()));
      added.records += static_cast<std::int64_t>(list.records.size());
    } catch (const InputError& e) {
      added.bad.push_back(e.diagnostic());
    }
  }
  if (added.records > 0) Q_EMIT changed();
  return added;
}

void RecordLibrary::keep(const Json& record) {
  QDir().mkpath(folder_);
  const auto name = record.value("name", std::string("run"));
  write_file(free_name(text(name)).toStdString(), record.dump(1) + "\n");
  Q_EMIT changed();
}

bool RecordLibrary::owns(const QString& file) const {
  return QFileInfo(file).absolutePath() == QDir(folder_).absolutePath();
}

bool RecordLibrary::remove(const QString& file) {
  if (!owns(file) || !QFile::remove(file)) return false;
  Q_EMIT changed();
  return true;
}

RecordList RecordLibrary::all(const HardwareCatalog& hardware) const {
  RecordList list = built_in_records(hardware);
  const QStringList names = QDir(folder_).entryList({QStringLiteral("*.json")}, QDir::Files);
  for (const QString& name : names) {
    try {
      RecordList own = load_records({QDir(folder_).filePath(name).toStdString()}, hardware);
      std::move(own.records.begin(), own.records.end(), std::back_inserter(list.records));
      std::move(own.bad.begin(), own.bad.end(), std::back_inserter(list.bad));
    } catch (const InputError& e) {
      list.bad.push_back(e.diagnostic());
    }
  }
  return list;
}

}  // namespace shardplan::gui
