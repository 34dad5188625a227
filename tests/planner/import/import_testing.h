// Files as texts, imported.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "import/import.h"

namespace shardplan::importing {

inline Imported import_text(std::string_view text, const Json& flags = {{"cluster", "8xH100"}},
                            const std::string& file = "file") {
  return import_documents(parse_documents(text, file), "", flags);
}

inline Json job_of(std::string_view text, const Json& flags = {{"cluster", "8xH100"}}) {
  return import_text(text, flags).job;
}

inline std::string error_of(std::string_view text, const Json& flags = {{"cluster", "8xH100"}}) {
  try {
    import_text(text, flags);
  } catch (const InputError& e) {
    return e.what();
  }
  return "";
}

inline bool noted(const Imported& imported, Note::Kind kind, std::string_view key) {
  for (const Note& note : imported.notes)
    if (note.kind == kind && note.key == key) return true;
  return false;
}

}  // namespace shardplan::importing
