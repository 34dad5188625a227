#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/lists.h"
#include "load/model.h"
#include "render/model_text.h"

namespace shardplan::cli {
namespace {

struct ModelArguments {
  std::string model, mlp;
  bool every = false;
  Output output;
};

Exit show(const ModelArguments& a) {
  const BuildOptions options{.counts_only = true};
  const Model model = a.mlp.empty()
                          ? load_named_model(a.model, {"<command line>", "MODEL", ""}, options)
                          : load_model({{"mlp", integer_list("--mlp", a.mlp, 1)}},
                                       {"<command line>", "MODEL", ""}, options);
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
  command->add_option("MODEL", a->model, "catalogue name, config.json or a size such as 7B");
  command->add_option("--mlp", a->mlp, "widths of a multilayer perceptron: 784,128,10");
  command->add_flag("--every-tensor", a->every, "list each tensor by its full name");
  command->footer("Example: shardplan model llama-2-7b");
  add_output(*command, a->output);
  command->callback([a, &run] {
    if (a->model.empty() && a->mlp.empty()) throw CLI::RequiredError("MODEL");
    if (!a->model.empty() && !a->mlp.empty()) throw CLI::ExcludesError("MODEL", "--mlp");
    run = [a] { return show(*a); };
  });
}

}  // namespace shardplan::cli
