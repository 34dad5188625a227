// What people have, turned into a job: files of trainers, launch scripts, configurations.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "import/document.h"
#include "import/note.h"
#include "import/recipe.h"
#include "json/document.h"

namespace shardplan::importing {

struct Imported {
  Json job;                                            ///< shardplan.job/1
  std::vector<Note> notes;                             ///< what became of each key
  std::vector<std::string> headings;                   ///< "sft.yaml: an axolotl configuration"
  std::map<std::string, Origin, std::less<>> origins;  ///< of the job's fields, by pointer
};

/// Reads the files as one job. `kind` is a name of kinds(), or "" to tell it by content; `flags`
/// are fields of the job that come from elsewhere, such as model and cluster. Throws InputError for
/// a file of no known kind, a key that cannot be understood, and what is missing.
Imported import_files(const std::vector<std::string>& paths, const std::string& kind,
                      const Json& flags);

/// The same of documents that are read already; follows no files that they name.
Imported import_documents(const std::vector<Document>& documents, const std::string& kind,
                          const Json& flags);

/// An error about a field of an imported job as one about the key that said it, where a key did.
InputError explained(const InputError& error, const Imported& imported);

/// Whether a path is a file of a kind that says how to train, and not only a model.
bool is_trainer_file(const std::string& path);

/// Whether a file is a job of shardplan's own, or nothing that an import knows.
bool is_own_job(const std::string& path);

}  // namespace shardplan::importing
