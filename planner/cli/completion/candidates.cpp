#include "cli/completion/candidates.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/ascii.h"
#include "cli/commands.h"
#include "job/fields.h"
#include "load/catalog.h"
#include "load/hardware.h"

namespace shardplan::cli {
namespace {

using Candidates = std::vector<Candidate>;

/// Those that begin as `typed` does, whatever the case of letters.
Candidates beginning(const Candidates& all, std::string_view typed) {
  const std::string start = lower(typed);
  Candidates some;
  for (const Candidate& c : all)
    if (lower(c.word).starts_with(start)) some.push_back(c);
  return some;
}

Candidates models() {
  Candidates all;
  for (const CatalogModel& model : catalog_models()) all.push_back({model.name, ""});
  return all;
}

/// "2x8x" of "2x8xH1": the counts that are typed already.
std::string counts_in(std::string_view typed) {
  std::size_t end = 0;
  for (std::size_t i = 0; i < typed.size() && (is_digit(typed[i]) || typed[i] == 'x'); ++i)
    if (typed[i] == 'x') end = i + 1;
  return std::string(typed.substr(0, end));
}

Candidates clusters(std::string_view typed) {
  const HardwareCatalog catalog = load_hardware_catalog();
  const std::string counts = counts_in(typed);
  Candidates all;
  for (const CatalogGpu& gpu : catalog.gpus)
    all.push_back({(counts.empty() ? "1x" : counts) + gpu.gpu.name, ""});
  if (counts.empty())
    for (const Instance& instance : catalog.instances)
      all.push_back({instance.name, instance.provider});
  return all;
}

/// "text" and "json" of "TEXT:{text,json}", as CLI11 shows what it checks.
Candidates checked_values(const CLI::Option& option) {
  const std::string shown = option.get_type_name();
  std::string_view type = shown;
  Candidates all;
  const std::size_t open = type.find('{'), close = type.rfind('}');
  if (open == type.npos || close == type.npos) return all;
  type = type.substr(open + 1, close - open - 1);
  while (!type.empty()) {
    const std::size_t comma = std::min(type.find(','), type.size());
    all.push_back({std::string(type.substr(0, comma)), ""});
    type.remove_prefix(std::min(comma + 1, type.size()));
  }
  return all;
}

Candidates values_of(const CLI::Option& option, std::string_view typed) {
  const std::string flag = option.get_name();
  if (flag == "--model" || flag == "MODEL") return models();
  if (flag == "--cluster" || flag == "--gpus" || flag == "CLUSTER") return clusters(typed);
  for (const JobField& field : job_fields()) {
    if (field.flag != flag) continue;
    Candidates all;
    if (field.kind == JobField::Kind::boolean) all = {{"true", ""}, {"false", ""}};
    for (const std::string_view choice : field.choices) all.push_back({std::string(choice), ""});
    return all;
  }
  return checked_values(option);
}

/// Short enough for a line beside the word.
std::string meaning_of(const CLI::Option& option) {
  const std::string& help = option.get_description();
  return help.substr(0, help.find_first_of(";.\n"));
}

Candidates flags_of(const CLI::App& command) {
  Candidates all;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames())
      all.push_back({"--" + name, meaning_of(*option)});
  return all;
}

bool is_flag(std::string_view word) {
  return word.starts_with("-") && word.size() > 1;
}

/// The positional that the word behind `before` is: flags and their values do not count.
const CLI::Option* positional_behind(const CLI::App& command,
                                     const std::vector<std::string>& before) {
  std::size_t place = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (!is_flag(before[i])) {
      ++place;
    } else if (const CLI::Option* option = command.get_option_no_throw(before[i])) {
      if (option->get_items_expected_max() > 0) ++i;
    }
  }
  for (const CLI::Option* option : command.get_options())
    if (option->get_positional() && place-- == 0) return option;
  return nullptr;
}

Candidates in_command(const CLI::App& command, const std::vector<std::string>& before,
                      std::string_view typed) {
  if (!before.empty() && is_flag(before.back())) {
    const CLI::Option* option = command.get_option_no_throw(before.back());
    if (option != nullptr && option->get_items_expected_max() > 0) return values_of(*option, typed);
  }
  if (is_flag(typed) || typed == "-") return flags_of(command);
  const CLI::Option* option = positional_behind(command, before);
  return option == nullptr ? Candidates() : values_of(*option, typed);
}

}  // namespace

std::vector<Candidate> candidates(const std::vector<std::string>& words) {
  CLI::App app("", "shardplan");
  Run run;
  const std::string typed = words.empty() ? "" : words.back();
  if (words.size() <= 1) {
    add_commands(app, run, "");
    Candidates all;
    for (const CLI::App* command : app.get_subcommands({}))
      all.push_back({command->get_name(), command->get_description()});
    return beginning(all, typed);
  }
  add_commands(app, run, words.front());
  const auto is_asked = [&](const CLI::App* command) {
    return command->get_name() == words.front();
  };
  const std::vector<const CLI::App*> asked = std::as_const(app).get_subcommands(is_asked);
  if (asked.empty()) return {};
  const std::vector<std::string> before(words.begin() + 1, words.end() - 1);
  return beginning(in_command(*asked.front(), before, typed), typed);
}

Exit complete(const std::vector<std::string>& words) {
  std::string lines;
  for (const Candidate& c : candidates(words)) lines += c.word + "\t" + c.meaning + "\n";
  Output().write_text(lines);
  return Exit::done;
}

}  // namespace shardplan::cli
