// Texts that stand for files: what a caller of the library has in memory is read as a file of that
// name would be, wherever a path is taken, and errors name it so.
#pragma once

#include <map>
#include <string>

namespace shardplan {

/// By the name that stands for the file, such as "<job>": no file is called so.
using TextsByName = std::map<std::string, std::string, std::less<>>;

/// Gives `texts` to everything that this thread reads while this lives; not to other threads, so
/// that callers at the same time may use the same names.
class GivenTexts {
 public:
  explicit GivenTexts(TextsByName texts);
  /// Those of another thread, for one that works for it: nullptr, or current() there.
  explicit GivenTexts(const TextsByName* of_employer);
  ~GivenTexts();
  GivenTexts(const GivenTexts&) = delete;
  GivenTexts& operator=(const GivenTexts&) = delete;

  /// What this thread is given, or nullptr.
  static const TextsByName* current();

 private:
  TextsByName texts_;
  const TextsByName* outer_;
};

/// The text given under this name, or nullptr. A folder before the name does not matter: paths in a
/// job are looked for beside its file.
const std::string* given_text(const std::string& path);

/// Whether there is something to read: a given text, or a regular file.
bool is_readable(const std::string& path);

}  // namespace shardplan
