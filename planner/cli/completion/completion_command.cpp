#include <array>
#include <memory>
#include <string_view>

#include "cli/commands.h"

namespace shardplan::cli {
namespace {

// Each script asks the program for what the word at the cursor can be, a line each: the word, a
// tab, its meaning. Where the program has no answer, the shell offers files.

constexpr std::string_view kBash = R"(# bash completion for shardplan
_shardplan() {
  local IFS=$'\n'
  COMPREPLY=($("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f 1))
}
complete -o default -o nosort -F _shardplan shardplan
)";

constexpr std::string_view kZsh = R"(#compdef shardplan
_shardplan() {
  local -a lines words_ meanings
  local line
  lines=("${(@f)$(${words[1]} __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  for line in $lines; do
    words_+=("${line%%$'\t'*}")
    meanings+=("${line/$'\t'/  }")
  done
  if (( $#words_ )); then
    compadd -U -l -d meanings -a words_
  else
    _files
  fi
}
if [ "$funcstack[1]" = "_shardplan" ]; then _shardplan "$@"; else compdef _shardplan shardplan; fi
)";

constexpr std::string_view kFish = R"(# fish completion for shardplan
function __shardplan_complete
    set --local words (commandline --tokenize --current-process --cut-at-cursor)
    $words[1] __complete $words[2..] (commandline --current-token --cut-at-cursor) 2>/dev/null
end
complete --command shardplan --keep-order --arguments '(__shardplan_complete)'
)";

struct Shell {
  std::string_view name, script;
};
constexpr std::array kShells{Shell{"bash", kBash}, Shell{"zsh", kZsh}, Shell{"fish", kFish}};

struct CompletionArguments {
  std::string shell;
  Output output;
};

Exit run_completion(const CompletionArguments& a) {
  for (const Shell& shell : kShells)
    if (shell.name == a.shell) a.output.write_bytes(shell.script);
  return Exit::done;
}

}  // namespace

void add_completion(CLI::App& app, Run& run) {
  auto a = std::make_shared<CompletionArguments>();
  CLI::App* command =
      app.add_subcommand("completion", "A script that completes words in bash, zsh or fish");
  std::vector<std::string> names;
  for (const Shell& shell : kShells) names.emplace_back(shell.name);
  command->add_option("SHELL", a->shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember(names));
  command->add_option("-o,--output", a->output.file, "write the script to a file");
  command->footer(
      "Example: source <(shardplan completion bash)\n"
      "fish: shardplan completion fish > ~/.config/fish/completions/shardplan.fish\n"
      "zsh: shardplan completion zsh > ~/.zfunc/_shardplan, a folder of $fpath");
  command->callback([a, &run] { run = [a] { return run_completion(*a); }; });
}

}  // namespace shardplan::cli
