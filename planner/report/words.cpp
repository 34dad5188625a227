#include "report/words.h"

#include <algorithm>

#include "frameworks/planning_registry.h"
#include "frameworks/registry.h"
#include "lowering/rlhf/roles.h"
#include "save/estimate.h"

namespace shardplan::report {
Text message(std::string key, std::vector<Argument> arguments) {
  return {std::move(key), std::move(arguments)};
}

Text words_of(Fit fit) {
  return message("fit." + std::string(name_of(fit)));
}
Text words_of(Phase phase) {
  return message("phase." + std::string(name_of(phase)));
}
Text words_of(Category category, const GpuAbilities& gpu) {
  std::vector<Argument> names;
  if (category == Category::cuda_context) names.push_back({"runtime", gpu.runtime});
  if (category == Category::nccl) names.push_back({"collectives", gpu.collectives});
  return message("category." + std::string(name_of(category)), std::move(names));
}
Text words_of(RoleKind role) {
  return message("role." + std::string(name_of(role)));
}
Text words_of(LinkKind link) {
  return message("link." + std::string(name_of(link)));
}

Text words_of(Quantization format) {
  return message("quantization." + std::string(name_of(format)));
}

Text cluster_words(const Cluster& c) {
  if (c.nodes == 1)
    return message("cluster.one_node", {{"gpus", count(c.gpus_per_node)}, {"gpu", c.gpu.name}});
  return message(
      "cluster.nodes",
      {{"nodes", count(c.nodes)}, {"gpus", count(c.gpus_per_node)}, {"gpu", c.gpu.name}});
}

std::string model_name(const Model& model) {
  return model.facts.name.empty() ? model.facts.model_type : model.facts.name;
}

Text framework_words(const Framework& framework) {
  return planning_of(framework.kind).words(framework);
}

Text framework_words(const Plan& plan) {
  if (plan.workload.kind != WorkKind::inference) return framework_words(plan.framework);
  if (const auto& engine = plan.workload.generation.engine)
    return message("framework.engine", {{"engine", std::string(engine->engine->words)}});
  if (plan.workload.generation.injection) return message("framework.injection");
  if (zero_options(plan) != nullptr)
    return message("framework.zero_inference", {{"framework", framework_words(plan.framework)}});
  return message("framework.transformers");
}

Cell degree_words(const Plan& plan) {
  if (plan.parallel.only_data()) return {};
  Cell all = message("degree.data", {{"ranks", count(plan.data_ranks())}});
  for (const Degree degree : {Degree::expert, Degree::context, Degree::sequence,
                              Degree::virtual_pipeline, Degree::pipeline, Degree::tensor}) {
    const std::int64_t ranks = plan.parallel.*member_of(degree);
    if (ranks == 1) continue;
    const Text name = message("degree." + std::string(name_of(degree)), {{"ranks", count(ranks)}});
    // Chunks and experts are divisions within what the other degrees have made.
    const bool multiplies = degree != Degree::expert && degree != Degree::virtual_pipeline;
    all = multiplies ? message("list.times", {{"left", name}, {"right", all}})
                     : message("list.with", {{"left", all}, {"right", name}});
  }
  if (plan.parallel.sequence_parallel)
    all = message("list.with", {{"left", all}, {"right", message("degree.sequence_parallel")}});
  return all;
}

Cell head_of(const Column& column) {
  if (!std::holds_alternative<std::monostate>(column.head)) return column.head;
  return message("column." + column.id);
}

Cell joined(const std::vector<Cell>& cells) {
  if (cells.empty()) return {};
  Cell all = cells.front();
  for (std::size_t i = 1; i < cells.size(); ++i)
    all = message("list.plus", {{"left", all}, {"right", cells[i]}});
  return all;
}

std::string color_of(Category category) {
  return std::string(name_of(category));
}

std::vector<std::pair<std::string, Text>> legend_of(const std::vector<CategoryBytes>& all,
                                                    const GpuAbilities& gpu) {
  std::vector<std::pair<std::string, Text>> legend;
  for (std::size_t c = 0; c < kCategoryCount; ++c) {
    const auto has = [c](const CategoryBytes& bytes) { return bytes[c] > 0; };
    if (std::none_of(all.begin(), all.end(), has)) continue;
    const Category category = static_cast<Category>(c);
    legend.emplace_back(color_of(category), words_of(category, gpu));
  }
  return legend;
}

CategoryBytes at_peak(const Estimate& estimate) {
  CategoryBytes bytes{};
  for (const CategoryLine& line : estimate.breakdown) bytes[index_of(line.category)] = line.at_peak;
  return bytes;
}

std::int64_t sent(const Estimate& estimate, LinkKind link) {
  std::int64_t sum = 0;
  for (const TrafficLine& line : estimate.traffic)
    if (line.link == link) sum += line.bytes_per_step;
  return sum;
}

}  // namespace shardplan::report
