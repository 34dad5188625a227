#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "load/model.h"
#include "render/model_text.h"

namespace shardplan::cli {
namespace {

struct ModelArguments {
  std::string model;
  bool every = false;
  Output output;
};

Exit show(const ModelArguments& a) {
  const Model model =
      load_named_model(a.model, {"<command line>", "MODEL", ""}, {.counts_only = true});
  if (a.output.json())
    a.output.write_json(model_json(model, a.every));
  else
    a.output.write_text(model_text(model, a.every));
  return Exit::done;
}

}  // namespace

void add_model(CLI::App& app, Run& run) {
  auto a = std::make_shared<ModelArguments>();
  CLI::App* command = app.add_subcommand("model", "Parameters, tensors and layers of a model");
  command->add_option("MODEL", a->model, "catalogue name, config.json or a size such as 7B")
      ->required();
  command->add_flag("--every-tensor", a->every, "list each tensor by its full name");
  command->footer("Example: shardplan model llama-2-7b");
  add_output(*command, a->output);
  command->callback([a, &run] { run = [a] { return show(*a); }; });
}

}  // namespace shardplan::cli
