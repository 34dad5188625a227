#include "report/words.h"

#include <algorithm>

#include "save/estimate.h"

namespace shardplan::report {
namespace {

Text place_of(OffloadDevice device) {
  return message(device == OffloadDevice::cpu ? "place.host" : "place.nvme");
}

Text deepspeed_words(const ZeroOptions& zero) {
  Text text = message("framework.deepspeed", {{"stage", std::to_string(zero.stage)}});
  if (zero.offload_optimizer.device != OffloadDevice::none)
    text = message("framework.offload_optimizer",
                   {{"framework", text}, {"place", place_of(zero.offload_optimizer.device)}});
  if (zero.offload_param.device != OffloadDevice::none)
    text = message("framework.offload_parameters",
                   {{"framework", text}, {"place", place_of(zero.offload_param.device)}});
  return text;
}

}  // namespace

Text message(std::string key, std::vector<Argument> arguments) {
  return {std::move(key), std::move(arguments)};
}

Text words_of(Fit fit) {
  return message("fit." + std::string(name_of(fit)));
}
Text words_of(Phase phase) {
  return message("phase." + std::string(name_of(phase)));
}
Text words_of(Category category) {
  return message("category." + std::string(name_of(category)));
}
Text words_of(LinkKind link) {
  return message("link." + std::string(name_of(link)));
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
  switch (framework.kind) {
    case FrameworkKind::single:
      return message("framework.single");
    case FrameworkKind::ddp:
      return message(framework.ddp.zero_redundancy_optimizer ? "framework.ddp_zero_redundancy"
                                                             : "framework.ddp");
    case FrameworkKind::fsdp2:
      return message("framework.fsdp2");
    case FrameworkKind::native:
      return message("framework.native");
    case FrameworkKind::megatron:
      return message(framework.megatron.distributed_optimizer ? "framework.megatron_distributed"
                                                              : "framework.megatron");
    case FrameworkKind::deepspeed:
      break;
  }
  return deepspeed_words(framework.deepspeed.zero);
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

std::vector<std::pair<std::string, Text>> legend_of(const std::vector<CategoryBytes>& all) {
  std::vector<std::pair<std::string, Text>> legend;
  for (std::size_t c = 0; c < kCategoryCount; ++c) {
    const auto has = [c](const CategoryBytes& bytes) { return bytes[c] > 0; };
    if (std::none_of(all.begin(), all.end(), has)) continue;
    const Category category = static_cast<Category>(c);
    legend.emplace_back(color_of(category), words_of(category));
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
