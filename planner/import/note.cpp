#include "import/note.h"

#include <fmt/format.h>

#include <algorithm>

namespace shardplan::importing {
namespace {

std::string place(const Note& note) {
  if (note.line == 0) return note.key;
  return fmt::format("{} (line {})", note.key, note.line);
}

/// Keys of one kind and reason, in one line: "ignored  wandb_project, wandb_name: ...".
std::string grouped(const std::vector<Note>& notes, Note::Kind kind, std::string_view word) {
  std::vector<std::pair<std::string, std::string>> groups;  // reason, keys
  for (const Note& note : notes) {
    if (note.kind != kind) continue;
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const auto& g) { return g.first == note.reason; });
    if (group == groups.end()) group = groups.insert(groups.end(), {note.reason, ""});
    group->second += (group->second.empty() ? "" : ", ") + note.key;
  }
  std::string text;
  for (const auto& [reason, keys] : groups)
    text += fmt::format("  {:<12} {}{}\n", word, keys, reason.empty() ? "" : ": " + reason);
  return text;
}

std::string took(const std::vector<Note>& notes) {
  std::string text;
  std::string file;
  for (const Note& note : notes) {
    if (note.kind != Note::Kind::took) continue;
    if (note.file != file) text += fmt::format("  from {}\n", file = note.file);
    text += note.field.empty()
                ? fmt::format("  {:<12} {}\n", "took", place(note))
                : fmt::format("  {:<12} {} as {}\n", "took", place(note), note.field);
  }
  return text;
}

std::string assumed(const std::vector<Note>& notes) {
  std::string text;
  for (const Note& note : notes)
    if (note.kind == Note::Kind::assumed)
      text += fmt::format("  {:<12} {} ({})\n", "assumed", note.field, note.reason);
  return text;
}

std::string warned(const std::vector<Note>& notes) {
  std::string text;
  for (const Note& note : notes)
    if (note.kind == Note::Kind::warning)
      text += fmt::format("  {:<12} {}: {}\n", "not counted", place(note), note.reason);
  return text;
}

std::size_t count(const std::vector<Note>& notes, Note::Kind kind) {
  return static_cast<std::size_t>(std::count_if(
      notes.begin(), notes.end(), [&](const Note& note) { return note.kind == kind; }));
}

}  // namespace

std::string all_notes(const std::vector<Note>& notes) {
  return took(notes) + assumed(notes) + warned(notes) +
         grouped(notes, Note::Kind::ignored, "ignored") +
         grouped(notes, Note::Kind::unknown, "not known");
}

std::string short_notes(const std::vector<Note>& notes) {
  std::string text = fmt::format("  took {} keys, ignored {} that change nothing here\n",
                                 count(notes, Note::Kind::took), count(notes, Note::Kind::ignored));
  return text + assumed(notes) + warned(notes) + grouped(notes, Note::Kind::unknown, "not known");
}

}  // namespace shardplan::importing
