#include "import/embedded_commands.h"

#include <algorithm>
#include <string>

namespace shardplan::importing {
namespace {

/// NAME=value lines of {NAME: value}, ["NAME=value"] or [{name: NAME, value: value}].
void add_variables(const Json& env, std::string& script) {
  const auto add = [&](const std::string& name, const Json& value) {
    if (value.is_structured() || value.is_null()) return;
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    if (text.find_first_of("'\n") == text.npos) script += name + "='" + text + "'\n";
  };
  if (env.is_object())
    for (const auto& [name, value] : env.items()) add(name, value);
  if (!env.is_array()) return;
  for (const Json& one : env) {
    if (one.is_object() && one.contains("name") && one["name"].is_string() && one.contains("value"))
      add(one["name"].get<std::string>(), one["value"]);
    if (!one.is_string()) continue;
    const std::string& text = one.get_ref<const std::string&>();
    if (const std::size_t equals = text.find('='); equals != text.npos)
      add(text.substr(0, equals), text.substr(equals + 1));
  }
}

/// Lines, or one command in words where arguments stand alone.
void add_texts(const Json& list, std::string& script) {
  const bool words = std::ranges::any_of(list, [](const Json& one) {
    return one.is_string() && one.get_ref<const std::string&>().starts_with("-");
  });
  std::string last;
  for (const Json& one : list) {
    if (one.is_structured() || one.is_null()) continue;
    last = one.is_string() ? one.get<std::string>() : one.dump();
    // `bash -c TEXT`: the text is a script.
    const bool whole = last.find('\n') != last.npos;
    script += (whole ? "\n" : "") + last + (words && !whole ? " " : "\n");
  }
  script += "\n";
}

void gather(const Json& value, std::string& script) {
  if (value.is_object()) {
    for (const char* name : {"env", "envs"})
      if (value.contains(name)) add_variables(value[name], script);
    // A container's command stands before its arguments.
    if (value.contains("command") && value["command"].is_array()) {
      Json all = value["command"];
      if (value.contains("args") && value["args"].is_array())
        for (const Json& one : value["args"]) all.push_back(one);
      add_texts(all, script);
    } else if (value.contains("args") && value["args"].is_array()) {
      add_texts(value["args"], script);
    }
    for (const auto& [name, one] : value.items())
      if (name != "command" && name != "args" && name != "env" && name != "envs")
        gather(one, script);
    return;
  }
  if (value.is_array()) {
    const bool texts = !value.empty() &&
                       std::ranges::all_of(value, [](const Json& one) { return one.is_string(); });
    if (texts) return add_texts(value, script);
    for (const Json& one : value) gather(one, script);
    return;
  }
  if (value.is_string() && value.get_ref<const std::string&>().find(' ') != std::string::npos)
    script += value.get<std::string>() + "\n";
}

}  // namespace

std::vector<Document> embedded_commands(const Document& yaml) {
  std::string script;
  gather(yaml.value, script);
  std::vector<Document> commands = parse_script(script, yaml.file);
  for (Document& command : commands) command.positions = {};  // lines of the text, not of the file
  return commands;
}

}  // namespace shardplan::importing
