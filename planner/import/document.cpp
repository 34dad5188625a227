#include "import/document.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

#include "base/ascii.h"
#include "base/diagnostic.h"
#include "import/command_line.h"
#include "import/python_trainer.h"
#include "json/utf8.h"
#include "load/ds_config/document.h"
#include "toml/document.h"
#include "yaml/document.h"

namespace shardplan::importing {
namespace {

namespace fs = std::filesystem;

std::string_view trimmed(std::string_view line) {
  const std::size_t begin = line.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return line.substr(begin, line.find_last_not_of(" \t\r") - begin + 1);
}

/// The lines that say something: neither empty nor comments.
std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, end));
    if (!line.empty() && line.front() != '#') lines.push_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

/// "[training]" and "[[override]]" head TOML's tables; a YAML list would go on behind it.
bool is_toml(const std::vector<std::string_view>& lines) {
  if (lines.empty() || lines.front().find(": ") < lines.front().find('=')) return false;
  const auto heads = [](std::string_view line) {
    if (line.front() != '[') return false;
    const std::size_t end = line.find(']');
    if (end == std::string_view::npos || end < 2) return false;
    return std::all_of(line.begin() + 1, line.begin() + static_cast<std::ptrdiff_t>(end),
                       [](char c) {
                         return is_letter(c) || is_digit(c) || c == '_' || c == '-' || c == '.' ||
                                c == '"' || c == '[';
                       });
  };
  return std::any_of(lines.begin(), lines.end(), heads) &&
         std::any_of(lines.begin(), lines.end(),
                     [](std::string_view line) { return line.find('=') != line.npos; });
}

/// "worker-1 slots=8": DeepSpeed's and Open MPI's form.
bool is_hostfile(const std::vector<std::string_view>& lines) {
  return !lines.empty() && std::all_of(lines.begin(), lines.end(), [](std::string_view line) {
    const std::size_t slots = line.find(" slots=");
    return slots != line.npos && slots + 7 < line.size() && is_digit(line[slots + 7]);
  });
}

Document hostfile(const std::vector<std::string_view>& lines, const std::string& file) {
  Json hosts = Json::object();
  for (const std::string_view line : lines) {
    const std::string_view slots = line.substr(line.find(" slots=") + 7);
    std::int64_t count = 0;
    for (std::size_t i = 0; i < slots.size() && i < 6 && is_digit(slots[i]); ++i)
      count = count * 10 + (slots[i] - '0');
    hosts[std::string(line.substr(0, line.find_first_of(" \t")))] = count;
  }
  Document document;
  document.file = file;
  document.value = Json{{"hostfile", std::move(hosts)}};
  return document;
}

/// What YAML makes of an argument: a number, a truth, a list or an object, else the text.
Json value_of(const std::string& text) {
  if (text.empty()) return "";
  if (text.size() < 10'000 && text.find_first_of("#&*!|>%@`:\n") == std::string::npos) {
    try {
      return parse_yaml(text, "").value;
    } catch (const InputError&) {
      return text;
    }
  }
  return text.front() == '{' || text.front() == '['
             ? [&] {
                 Json parsed = Json::parse(text, nullptr, false);
                 return parsed.is_discarded() ? Json(text) : parsed;
               }()
             : Json(text);
}

std::string name_of_flag(std::string_view flag) {
  std::string name(flag.substr(flag.find_first_not_of('-')));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

/// "--name" or "-m"; not "-1", which is a value.
bool is_flag(const std::string& word) {
  const std::size_t name = word.find_first_not_of('-');
  return name != std::string::npos && name > 0 && word[name] != '=' && !is_digit(word[1]) &&
         word[1] != '.';
}

/// "a.b=c", "++a.b=c": Hydra's form.
bool is_override(const std::string& word) {
  const std::size_t equals = word.find('=');
  return equals != std::string::npos && equals > 0 && word.find_first_of("/ \"'{[") > equals;
}

/// An override of a key in a block: behind a value it is not a second one.
bool is_nested(const std::string& word) {
  return is_override(word) && word.find('.') < word.find('=');
}

void put(Document& document, const std::string& key, Json value, int line) {
  if (!document.positions.find(key).known() || !document.value.contains(key))
    document.positions.add(key, {line, 1});
  document.value[key] = std::move(value);
}

void put_override(Document& document, const std::string& word, int line) {
  const std::size_t equals = word.find('=');
  std::string path = word.substr(0, equals);
  path.erase(0, path.find_first_not_of('+'));
  document.positions.add(path, {line, 1});
  Json* at = &document.value;
  int depth = 0;
  for (std::size_t begin = 0; begin <= path.size() && ++depth < 30;) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    // "engine=fsdp engine.strategy=fsdp2": a choice of a group, and a key of that group.
    if (at->is_string())
      *at = Json{{kGroupChoice, *at}};
    else if (!at->is_object())
      *at = Json::object();
    at = &(*at)[path.substr(begin, end - begin)];
    begin = end + 1;
  }
  Json value = value_of(word.substr(equals + 1));
  if (value == "") document.unset.insert(path);  // key=$UNSET
  if (at->is_object() && !at->empty() && value.is_string())
    (*at)[kGroupChoice] = std::move(value);
  else
    *at = std::move(value);
}

/// The arguments in words[first, last), into `document`.
void read_arguments(Document& document, const std::vector<Word>& words, std::size_t first,
                    std::size_t last) {
  for (std::size_t i = first; i < last;) {
    const Word& word = words[i++];
    if (!is_flag(word.text)) {
      if (is_override(word.text))
        put_override(document, word.text, word.line);
      else
        document.words.push_back(word.text);
      continue;
    }
    const std::size_t equals = word.text.find('=');
    if (equals != std::string::npos) {
      const std::string name = name_of_flag(word.text.substr(0, equals));
      const bool unset = equals + 1 == word.text.size();  // --grad_acc=$ACC
      if (unset) document.unset.insert(name);
      put(document, name, unset ? Json(true) : value_of(word.text.substr(equals + 1)), word.line);
      continue;
    }
    Json values = Json::array();
    const std::size_t own = i;
    for (; i < last && !is_flag(words[i].text) && (i == own || !is_nested(words[i].text)); ++i)
      if (words[i].text != kUnset)
        values.push_back(value_of(words[i].text));
      else if (values.empty())
        document.unset.insert(name_of_flag(word.text));
    Json value = values.empty() ? Json(true) : values.size() == 1 ? Json(values[0]) : values;
    put(document, name_of_flag(word.text), std::move(value), word.line);
  }
}

std::string_view base_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

constexpr std::array<std::string_view, 5> kLaunchers{"torchrun", "accelerate", "deepspeed",
                                                     "python", "python3"};
/// Programs that take their arguments behind a word of their own.
constexpr std::array<std::string_view, 6> kPrograms{
    "oumi", "swift", "megatron", "llamafactory-cli", "axolotl", "trl"};

template <std::size_t N>
bool one_of(std::string_view word, const std::array<std::string_view, N>& names) {
  return std::find(names.begin(), names.end(), word) != names.end();
}

/// Where the program of words[first...] stands: a .py file, the module behind -m, or one of
/// kPrograms.
std::size_t program_at(const std::vector<Word>& words, std::size_t first) {
  for (std::size_t i = first; i < words.size(); ++i) {
    const std::string& word = words[i].text;
    if (word.ends_with(".py") || one_of(base_name(word), kPrograms)) return i;
    if ((word == "-m" || word == "--module") && i + 1 < words.size() &&
        !one_of(words[i + 1].text, kLaunchers) &&
        words[i + 1].text.find("torch.distributed") == std::string::npos)
      return i + 1;
  }
  return words.size();
}

/// The last part of the path; of ms-swift's own files the command that runs them, "swift sft" of
/// swift/cli/sft.py.
std::string program_name(std::string_view path) {
  const std::string_view name = base_name(path);
  for (const auto& [folder, command] :
       {std::pair{"swift/cli/_megatron/", "megatron "}, std::pair{"swift/cli/", "swift "}})
    if (path.find(folder) != path.npos && name.ends_with(".py"))
      return command + std::string(name.substr(0, name.size() - 3));
  return std::string(name);
}

/// A launcher's own arguments, and the program's behind them.
void read_command(std::vector<Document>& documents, const Command& command,
                  const std::string& file) {
  const std::vector<Word>& words = command.words;
  const auto launcher = std::find_if(words.begin(), words.end(), [](const Word& w) {
    return one_of(base_name(w.text), kLaunchers);
  });
  const bool launched = launcher != words.end();
  const auto first = static_cast<std::size_t>(launched ? launcher - words.begin() + 1 : 0);
  const std::size_t at = program_at(words, first);
  if (!launched && at == words.size() && (words.empty() || !is_flag(words.front().text))) return;
  if (launched) {
    Document& own = documents.emplace_back();
    own.file = file;
    own.program = std::string(base_name(launcher->text));
    own.value = Json::object();
    read_arguments(own, words, first, std::min(at, words.size()));
  }
  Document& program = documents.emplace_back();
  program.file = file;
  program.value = Json::object();
  program.program = at < words.size() ? program_name(words[at].text) : "arguments";
  std::size_t next = at < words.size() ? at + 1 : first;
  if (one_of(program.program, kPrograms) && next < words.size() && !is_flag(words[next].text))
    program.program += " " + words[next++].text;
  read_arguments(program, words, next, words.size());
  Json environment = Json::object();
  for (const auto& [name, value] : command.environment) environment[name] = value_of(value);
  program.value["environment"] = std::move(environment);
}

std::vector<Document> parse_commands(std::string_view text, const std::string& file) {
  std::vector<Document> documents;
  std::vector<Command> commands = parse_shell(text);
  // `echo $CMD` shows what runs further down, with more of its environment.
  std::stable_partition(commands.begin(), commands.end(), [](const Command& c) {
    return c.words.empty() || c.words.front().text != "echo";
  });
  for (const Command& command : commands) {
    for (const Word& word : command.words)  // sh -c "torchrun train.py --flags"
      if ((word.text.find(".py ") != word.text.npos || word.text.find(" -m ") != word.text.npos) &&
          word.text.find(" --") != word.text.npos)
        for (const Command& inner : parse_shell(word.text)) read_command(documents, inner, file);
    read_command(documents, command, file);
  }
  return documents;
}

/// A YAML mapping; nothing where the text is no YAML or no mapping, `problem` saying why.
std::vector<Document> try_yaml(std::string_view text, const std::string& file,
                               std::optional<InputError>& problem) {
  try {
    YamlDocument yaml = parse_yaml(text, file);
    if (!yaml.value.is_object()) return {};
    Document document;
    document.file = file;
    document.value = std::move(yaml.value);
    document.positions = std::move(yaml.positions);
    document.repeated = std::move(yaml.repeated);
    return {std::move(document)};
  } catch (const InputError& error) {
    problem = error;
    return {};
  }
}

/// Whether lines look like "key: value" and not like a program's: which error to show.
bool looks_like_yaml(const std::vector<std::string_view>& lines) {
  const auto keys = std::count_if(lines.begin(), lines.end(), [](std::string_view line) {
    return line.find(": ") != line.npos || line.ends_with(":") || line.starts_with("- ");
  });
  return keys * 2 > static_cast<std::ptrdiff_t>(lines.size());
}

}  // namespace

const Json* value_below(const Json& object, std::string_view path) {
  if (!object.is_object()) return nullptr;
  const auto whole = object.find(std::string(path));
  if (whole != object.end()) return &*whole;
  const std::size_t point = path.find('.');
  if (point == path.npos) return nullptr;
  const auto part = object.find(std::string(path.substr(0, point)));
  return part == object.end() ? nullptr : value_below(*part, path.substr(point + 1));
}

std::optional<std::int64_t> integer_at(const Document& d, std::string_view path) {
  const Json* value = value_below(d.value, path);
  if (value == nullptr || !value->is_number_integer()) return std::nullopt;
  return value->get<std::int64_t>();
}

std::vector<Document> parse_documents(std::string_view text, const std::string& file) {
  const std::vector<std::string_view> lines = lines_of(text);
  const std::string_view start = trimmed(text.substr(0, std::min<std::size_t>(text.size(), 4000)));
  require_utf8(text, file);  // yaml-cpp takes bytes of zero for a sign of UTF-16 or UTF-32
  if (text.find_first_not_of(" \t\r\n") == text.npos)
    throw InputError({.file = file,
                      .message = "is empty",
                      .expected = "JSON, YAML, TOML, a hostfile, or a shell script that starts a "
                                  "training program"});
  Document document;
  document.file = file;
  if (!lines.empty() && lines.front().front() == '{') {
    document.value = read_ds_document(text, file).json;  // a ds_config may be hjson
    if (is_notebook(document.value)) return documents_of_notebook(document.value, file);
    document.positions = find_positions(text);
    return {std::move(document)};
  }
  if (is_hostfile(lines)) return {hostfile(lines, file)};
  if (is_python(text)) {
    if (auto trainers = trainers_of_program(text, file); !trainers.empty()) return trainers;
    throw InputError({.file = file,
                      .message = "a program that makes no TrainingArguments and no configuration "
                                 "of TRL's",
                      .expected = "the command that starts it, or the file that it reads"});
  }
  const bool script = start.starts_with("#!");
  if (!script && is_toml(lines)) {
    TomlDocument toml = parse_toml(text, file);
    document.value = std::move(toml.value);
    document.positions = std::move(toml.positions);
    return {std::move(document)};
  }
  std::optional<InputError> problem;
  if (!script)
    if (auto yaml = try_yaml(text, file, problem); !yaml.empty()) return yaml;
  if (problem && looks_like_yaml(lines)) throw *problem;
  std::vector<Document> commands = parse_commands(text, file);
  if (!commands.empty()) return commands;
  throw InputError({.file = file,
                    .message = "no keys and no program with arguments were found",
                    .expected = "JSON, YAML, TOML, a hostfile, or a shell script that starts a "
                                "training program"});
}

std::vector<Document> parse_script(std::string_view text, const std::string& file) {
  return parse_commands(text, file);
}

std::vector<Document> read_documents(const std::string& path) {
  return parse_documents(read_text_file(path), path);
}

std::string resolved_path(const std::string& path, const std::string& file) {
  std::error_code error;
  if (path.empty() || path.size() > 4000) return {};
  const fs::path folder = fs::path(file).parent_path();
  for (const fs::path& candidate : {folder / path, fs::path(path)})
    if (fs::exists(candidate, error)) return candidate.string();
  // Behind a folder that only a shell knows ("$DIR/a.yaml"), or said from a folder above, where
  // scripts are started. A word without an ending may be a model's name, and no file.
  const fs::path relative = fs::path(path).relative_path();
  const bool one_word = !relative.has_parent_path();
  const bool only_beside = one_word && (fs::path(path).is_absolute() || !relative.has_extension());
  fs::path above = (fs::current_path(error) / folder / "x").lexically_normal().parent_path();
  for (fs::path shown = folder;;) {
    if (fs::exists(above / relative, error)) return (shown / relative).string();
    if (only_beside || !above.has_relative_path()) return {};
    above = above.parent_path();
    const bool within = shown.has_relative_path() && shown.filename() != "..";
    shown = within ? shown.parent_path() : shown / "..";
  }
}

}  // namespace shardplan::importing
