// What people have, turned into a job: files of trainers, launch scripts, configurations.
#pragma once

#include <string>
#include <vector>

#include "import/document.h"
#include "import/note.h"
#include "json/document.h"

namespace shardplan::importing {

struct Imported {
  Json job;                           ///< shardplan.job/1
  std::vector<Note> notes;            ///< what became of each key
  std::vector<std::string> headings;  ///< "sft.yaml: an axolotl configuration"
};

/// Reads the files as one job. `kind` is a name of kinds(), or "" to tell it by content; `flags`
/// are fields of the job that come from elsewhere, such as model and cluster. Throws InputError for
/// a file of no known kind, a key that cannot be understood, and what is missing.
Imported import_files(const std::vector<std::string>& paths, const std::string& kind,
                      const Json& flags);

/// The same of documents that are read already; follows no files that they name.
Imported import_documents(const std::vector<Document>& documents, const std::string& kind,
                          const Json& flags);

/// Whether a file is a job of shardplan's own, or nothing that an import knows.
bool is_own_job(const std::string& path);

}  // namespace shardplan::importing
