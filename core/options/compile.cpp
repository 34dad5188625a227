// torch.compile as an object of a job.
#include "options/choices.h"
#include "options/member.h"
#include "options/tables.h"

namespace shardplan {
namespace {

constexpr std::array kModes{named("default", CompileMode::usual),
                            named("reduce-overhead", CompileMode::reduce_overhead),
                            named("max-autotune", CompileMode::max_autotune)};
constexpr std::array kScopes{named("model", CompileScope::model),
                             named("block", CompileScope::block)};

constexpr std::array kCompileOptions{
    option<&Plan::compile, &Compile::mode>({.key = "mode",
                                            .flag = "--compile-mode",
                                            .also = "--torch-compile-mode",
                                            .help = "the mode of torch.compile",
                                            .choices = kModes}),
    option<&Plan::compile, &Compile::scope>({.key = "scope",
                                             .flag = "--compile-scope",
                                             .help = "what is compiled in one piece",
                                             .default_text = "`model`; `block` with torchtitan",
                                             .choices = kScopes}),
};

}  // namespace

const OptionTable<Plan>& compile_table() {
  static constexpr OptionTable<Plan> kTable{"compile", "", kCompileOptions};
  return kTable;
}

}  // namespace shardplan
