#include "import/import.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <span>
#include <utility>

#include "base/ascii.h"
#include "base/diagnostic.h"
#include "base/nearest.h"
#include "import/embedded_commands.h"
#include "import/finish.h"
#include "import/kinds/kind.h"
#include "import/overlay.h"
#include "import/python_trainer.h"
#include "import/unread.h"
#include "import/unset_arguments.h"
#include "json/given_texts.h"
#include "logs/unread_log.h"

namespace shardplan::importing {
namespace {

constexpr std::size_t kMostDocuments = 200;

std::vector<std::string> kind_names() {
  std::vector<std::string> names;
  for (const Kind* kind : kinds()) names.emplace_back(kind->name);
  return names;
}

std::string read_kinds() {
  return fmt::format(
      "a file of {}, which --kind may say; or `shardplan fit MODEL CLUSTER` with "
      "what it says as flags",
      fmt::join(kind_names(), ", "));
}

const Kind& asked_kind(const std::string& name) {
  if (const Kind* kind = kind_named(name)) return *kind;
  const std::vector<std::string> names = kind_names();
  throw InputError({.file = "<command line>",
                    .key = "--kind",
                    .message = fmt::format("unknown kind '{}'", name),
                    .expected = fmt::format("one of {}", fmt::join(names, ", ")),
                    .nearest = nearest(name, std::span<const std::string>(names))});
}

/// What a script sets around its program and a step's time depends on.
void take_environment(const Document& d, Recipe& recipe) {
  constexpr const char* kBlocking = "environment.CUDA_LAUNCH_BLOCKING";
  const Json* blocking = value_below(d.value, kBlocking);
  if (!d.is_command() || blocking == nullptr || *blocking != 1) return;
  recipe.set_default("/launch_blocking", true);
  recipe.note({.kind = Note::Kind::took,
               .file = d.file,
               .key = "CUDA_LAUNCH_BLOCKING",
               .field = "launch_blocking: true"});
}

/// Whether some value is Hydra's reference, "${actor.strategy}", to a block that `file` has not.
bool refers_elsewhere(const Json& value, const Json& file) {
  if (value.is_object())
    return std::ranges::any_of(value, [&](const Json& v) { return refers_elsewhere(v, file); });
  if (!value.is_string()) return false;
  const std::string& text = value.get_ref<const std::string&>();
  if (!text.starts_with("${") || text.find('}') + 1 != text.size()) return false;
  if (text.find(':') != text.npos) return false;  // a resolver's, "${path.choose:a}"
  const auto point = std::find_if_not(
      text.begin() + 2, text.end(), [](char c) { return is_letter(c) || is_digit(c) || c == '_'; });
  return point != text.end() && *point == '.' &&
         !file.contains(std::string(text.begin() + 2, point));
}

/// Keys by which files are told, of the trainers whose files people write by hand.
constexpr auto kIdentifying = std::to_array<std::string_view>(
    {"base_model", "micro_batch_size", "sequence_len", "model_name_or_path",
     "per_device_train_batch_size", "distributed_type", "actor_rollout_ref", "zero_optimization",
     "train_micro_batch_size_per_gpu", "finetuning_type", "tensor_model_parallel_size"});

/// The first key that is spelt nearly as one of them, and that one; or two empty texts.
std::pair<std::string, std::string> misspelt_key(const Json& file) {
  if (!file.is_object()) return {};
  for (const auto& [key, value] : file.items()) {
    const std::string near = nearest(key, std::span<const std::string_view>(kIdentifying));
    if (!near.empty() && near != key) return {key, near};
  }
  return {};
}

struct Told {
  const Document* document;
  const Kind* kind;
};

/// Of a script's programs the first that trains, with its launcher; of other files all.
class Teller {
 public:
  Teller(const std::vector<Document>& documents, const std::string& kind)
      : documents_(documents), asked_(kind.empty() ? nullptr : &asked_kind(kind)) {}

  std::vector<Told> tell(Recipe& recipe) {
    std::vector<Told> told;
    const Document* launcher = nullptr;
    for (const Document& document : documents_) {
      if (asked_ == nullptr) refuse_unread(document);
      const Kind* kind = kind_of(document);
      if (kind != nullptr && kind->name == "launcher") {
        launcher = &document;
        continue;
      }
      if (asked_ != nullptr && (!document.is_command() || kind != nullptr)) kind = asked_;
      if (kind == nullptr) {
        if (!document.is_command()) unknown(document);
        continue;
      }
      if (document.is_command() && seen_before(told, document)) {
        ++left_out_;
        continue;
      }
      told.push_back({&document, kind});
      if (launcher != nullptr && document.is_command())
        told.push_back({launcher, kind_named("launcher")});
      launcher = nullptr;
    }
    if (left_out_ > 0)
      recipe.note({.kind = Note::Kind::warning,
                   .file = documents_.front().file,
                   .key = "script",
                   .reason = fmt::format("{} more of its programs train; the first is estimated",
                                         left_out_)});
    return told;
  }

 private:
  static bool seen_before(const std::vector<Told>& told, const Document& document) {
    return std::any_of(told.begin(), told.end(), [&](const Told& t) {
      return t.document->is_command() && t.document->file == document.file &&
             t.kind->name != "launcher";
    });
  }

  [[noreturn]] static void unknown(const Document& document) {
    // A group of Hydra's: what one worker's options are, without the others' (verl/trainer/config).
    const Json* options = value_below(document.value, "_target_");
    if ((options != nullptr && options->is_string()) ||
        refers_elsewhere(document.value, document.value))
      throw InputError({.file = document.file,
                        .key = document.value.contains("defaults") ? "defaults" : "_target_",
                        .message = "has the options of one worker alone",
                        .expected = "the whole configuration, which names it under defaults, or "
                                    "the script that starts the trainer"});
    if (const auto [key, near] = misspelt_key(document.value); !near.empty())
      throw InputError({.file = document.file,
                        .key = key,
                        .message = "unknown key, in a file of no kind that is known",
                        .expected = "a trainer's keys",
                        .nearest = near,
                        .position = document.positions.find(key)});
    throw InputError({.file = document.file,
                      .message = "is of no kind that is known",
                      .expected = read_kinds()});
  }

  const std::vector<Document>& documents_;
  const Kind* asked_;
  int left_out_ = 0;
};

/// A trainer's own arguments decide before what it is launched with.
bool comes_later(const Kind& kind) {
  return kind.name == "accelerate" || kind.name == "launcher" || kind.name == "hostfile";
}

bool names_a_file(const std::string& text) {
  for (const char* end : {".yaml", ".yml", ".json", ".toml"})
    if (text.ends_with(end)) return true;
  return false;
}

/// Configurations that a command names: `axolotl train a.yml`, `--config_file b.yaml`.
std::vector<std::string> named_files(const Document& document) {
  std::vector<std::string> files;
  if (!document.is_command()) return files;
  for (const std::string& word : document.words)
    if (names_a_file(word)) files.push_back(word);
  for (const char* key : {"config_file", "config", "c", "hostfile", "job.config_file"}) {
    const auto found = document.value.find(key);
    if (found == document.value.end() || !found->is_string()) continue;
    const std::string path = found->get<std::string>();
    if (resolved_path(path, document.file).empty() && names_a_file(path))
      throw InputError({.file = document.file,
                        .key = fmt::format("{}{}", *(key + 1) == 0 ? "-" : "--", key),
                        .message = fmt::format("no file '{}' beside this one, in a folder above "
                                               "or in the working directory",
                                               path),
                        .expected = "the file that the command is started with"});
    files.push_back(path);
  }
  return files;
}

/// Whether a command's arguments are keys of the file that it names: a launcher's are not.
bool says_more_than(const Document& command, const Document& file) {
  if (!command.is_command() || file.is_command()) return false;
  const Kind* kind = kind_of(command);
  return kind == nullptr || kind == kind_of(file);
}

void follow(std::vector<Document>& documents) {
  std::vector<std::string> seen;
  // Beside a program that opens its files itself, others of a script convert and judge.
  std::vector<std::string> opened;
  for (const Document& document : documents) {
    seen.push_back(document.file);
    const Kind* kind = kind_of(document);
    if (kind != nullptr && kind->opens_files) opened.push_back(document.file);
  }
  for (std::size_t i = 0; i < documents.size() && documents.size() < kMostDocuments; ++i) {
    if (std::ranges::find(opened, documents[i].file) != opened.end()) continue;
    for (const std::string& name : named_files(documents[i])) {
      const std::string path = resolved_path(name, documents[i].file);
      std::error_code error;
      if (path.empty() || !std::filesystem::is_regular_file(path, error) ||
          std::find(seen.begin(), seen.end(), path) != seen.end())
        continue;
      seen.push_back(path);
      std::vector<Document> more = read_documents(path);
      for (Document& document : more)
        if (says_more_than(documents[i], document)) lay_over(documents[i], document);
      std::move(more.begin(), more.end(), std::back_inserter(documents));
    }
  }
}

}  // namespace

Imported import_documents(const std::vector<Document>& documents, const std::string& kind,
                          const Json& flags) {
  Recipe recipe;
  recipe.has_model = flags.contains("model");
  recipe.asked_model = flags.value("model", Json());
  if (const Json* micro = value_below(flags, "workload.micro_batch");
      micro != nullptr && micro->is_number_integer())
    recipe.asked_micro_batch = micro->get<std::int64_t>();
  if (const Json* path = value_below(flags, "framework.ds_config");
      path != nullptr && path->is_string())
    recipe.asked_ds_config = path->get<std::string>();
  std::vector<Told> told = Teller(documents, kind).tell(recipe);
  if (told.empty())
    throw InputError({.file = documents.empty() ? "" : documents.front().file,
                      .message = "no training program with arguments was found",
                      .expected = read_kinds()});
  recipe.directory = std::filesystem::path(told.front().document->file).parent_path().string();
  std::stable_sort(told.begin(), told.end(), [](const Told& a, const Told& b) {
    return comes_later(*a.kind) < comes_later(*b.kind);
  });
  Imported imported;
  for (const Told& t : told) {
    recipe.kinds.emplace_back(t.document->file, std::string(t.kind->name));
    std::string heading = fmt::format("{}: {}", t.document->file, t.kind->words);
    if (t.document->is_command()) heading += fmt::format(", {}", t.document->program);
    imported.headings.push_back(std::move(heading));
    for (const std::string& key : t.document->repeated)
      recipe.note({.kind = Note::Kind::ignored,
                   .file = t.document->file,
                   .key = key,
                   .reason = "it appears again, and the last one counts"});
    t.kind->read(*t.document, recipe);
    take_environment(*t.document, recipe);
  }
  refuse_unset(recipe, flags);
  imported.job = finished_job(recipe, flags);
  imported.notes = std::move(recipe.notes);
  imported.origins = std::move(recipe.origins);
  return imported;
}

InputError explained(const InputError& error, const Imported& imported) {
  Diagnostic d = error.diagnostic();
  std::string pointer = "/" + d.key;
  std::replace(pointer.begin(), pointer.end(), '.', '/');
  for (; pointer.size() > 1; pointer.erase(pointer.rfind('/'))) {
    const auto origin = imported.origins.find(pointer);
    if (origin == imported.origins.end()) continue;
    const Origin& where = origin->second;
    d.file = where.file;
    d.key = fmt::format("{} ({})", where.key, d.key);
    d.position = {where.line, where.line > 0 ? 1 : 0};
    return InputError(std::move(d));
  }
  return error;
}

namespace {

bool trains(const Document& document) {
  const Kind* kind = kind_of(document);
  return kind != nullptr && kind->name != "launcher";
}

/// The file's documents; of one that starts jobs the programs that it starts.
std::vector<Document> documents_of(const std::string& path) {
  std::vector<Document> found = read_documents(path);
  if (found.size() != 1 || found.front().is_command() || kind_of(found.front()) != nullptr)
    return found;
  std::vector<Document> commands = embedded_commands(found.front());
  return std::ranges::any_of(commands, trains) ? commands : found;
}

}  // namespace

namespace {

/// The file's documents, of which some are of a kind that is known, or all are what `kind` says.
/// What people have at hand who ask why a run stopped is its log.
std::vector<Document> documents_or_refusal(const std::string& path, const std::string& kind) {
  std::vector<Document> found;
  try {
    found = documents_of(path);
  } catch (const InputError&) {
    logs::refuse_log(read_text_file(path), path);
    throw;
  }
  const auto known = [](const Document& document) { return kind_of(document) != nullptr; };
  if (!kind.empty() || std::ranges::any_of(found, known)) return found;
  for (const Document& document : found) refuse_unread(document);
  logs::refuse_log(read_text_file(path), path);
  return found;
}

}  // namespace

Imported import_files(const std::vector<std::string>& paths, const std::string& kind,
                      const Json& flags) {
  std::vector<Document> documents;
  for (const std::string& path : paths) {
    std::vector<Document> more = documents_or_refusal(path, kind);
    std::move(more.begin(), more.end(), std::back_inserter(documents));
  }
  follow(documents);
  return import_documents(documents, kind, flags);
}

bool is_trainer_file(const std::string& path) {
  if (!is_readable(path)) return false;
  try {
    const std::vector<Document> documents = documents_of(path);
    return std::any_of(documents.begin(), documents.end(), [](const Document& document) {
      if (document.value.contains("schema")) return false;
      const Kind* kind = kind_of(document);
      return kind != nullptr && kind->name != "hf_config";
    });
  } catch (const InputError&) {
    return false;
  }
}

bool is_own_job(const std::string& path) {
  const std::string text = read_text_file(path);
  const std::size_t start = text.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  if (start == std::string::npos) return false;
  if (text[start] != '{') return false;
  bool deep = false;  // parse_json() says so
  const auto watch = [&](int depth, Json::parse_event_t, Json&) {
    deep = deep || depth > kDeepestNesting;
    return !deep;
  };
  const Json json = Json::parse(text, watch, false, true);
  if (deep) return true;
  if (json.is_discarded() && is_trainer_file(path)) return false;  // hjson, which DeepSpeed reads
  if (!json.is_object() || json.contains("schema")) return true;
  if (is_notebook(json)) return false;
  if (json.contains("model") && json.contains("cluster")) return true;
  Document document;
  document.file = path;
  document.value = json;
  return kind_of(document) == nullptr;
}

}  // namespace shardplan::importing
