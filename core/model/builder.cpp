#include "model/builder.h"

#include <algorithm>

#include "frameworks/registry.h"
#include "model/joint_linears.h"
#include "model/peft_names.h"
#include "model/quantize.h"
#include "trainers/description.h"

namespace shardplan {

namespace tiled_loss {
extern const FusedKernel kKernel;
}

namespace {

/// The part of a tensor's name before the last dot: its module.
std::string_view module_of(std::string_view tensor) {
  return tensor.substr(0, tensor.rfind('.'));
}

/// The trainer's own head and loss.
void take_trainer_loss(const Plan& plan, BuildOptions& options) {
  const TrainerDescription& trainer = *plan.trainer;
  options.head_loss = plan.loss == LossKind::fused_linear && trainer.fused_head != nullptr
                          ? trainer.fused_head
                          : trainer.head_loss;
  if (plan.loss == LossKind::tiled) options.head_loss = &tiled_loss::kKernel;
  const bool supervised = trainer.supervises_by_token_loss && plan.loss == LossKind::cross_entropy;
  if (plan.loss != LossKind::log_probabilities && !supervised) return;
  if (traits_of(plan).split == SplitStyle::megatron) {  // its own, over parts of the words
    options.entropy = plan.entropy;
    return;
  }
  options.entropy = plan.entropy;
  options.token_loss =
      plan.entropy == EntropyKind::none ? trainer.token_loss : trainer.kept_token_loss;
}

}  // namespace

BuildOptions build_options(const Plan& plan) {
  BuildOptions options;
  options.attention = plan.attention;
  options.flash_attn = plan.calls_flash_attn();
  options.state_kernels = plan.state_kernels;
  options.lora = plan.workload.lora;
  options.loss = plan.loss;
  options.images = plan.workload.images;
  options.requested = plan.kernels;
  if (plan.workload.kind == WorkKind::train) take_trainer_loss(plan, options);
  options.widens_outputs = plan.trainer->widens_outputs && plan.autocasts_forward();
  options.all_f32 = plan.precision.compute == DType::f32;
  options.cached = plan.workload.kind == WorkKind::inference;
  options.weights = plan.workload.generation.weights;
  const FrameworkTraits& framework = traits_of(plan);
  // accelerate casts what FSDP trains, and a group of it has one type.
  if (options.lora && framework.shards_parameters(plan) && !framework.keeps_master)
    options.lora->saved_in_fp32 = true;
  framework.build(plan, options);
  return options;
}

void ModelBuilder::close_group() {
  const std::int32_t first =
      model_.groups.empty() ? 0 : model_.groups.back().first + model_.groups.back().count;
  const auto count = static_cast<std::int32_t>(model_.parameters.size()) - first;
  if (count > 0) model_.groups.push_back({first, count, repeat_, start_});
}

void ModelBuilder::begin_repeat(std::string_view prefix, std::int64_t repeat, std::int64_t start) {
  joint_.clear();  // names repeat from group to group
  close_group();
  prefix_ = std::string(prefix) + ".{}.";
  repeat_ = repeat;
  start_ = start;
  first_module_ = model_.modules.size();
}

void ModelBuilder::end_repeat() {
  close_group();
  prefix_.clear();
  repeat_ = 1;
  start_ = 0;
  first_module_ = model_.modules.size();
}

ModuleId ModelBuilder::add_module(std::string_view name) {
  model_.modules.push_back({prefix_ + std::string(name), {}});
  return static_cast<ModuleId>(model_.modules.size() - 1);
}

Parameter ModelBuilder::make_parameter(ModuleId module, std::string name,
                                       std::vector<std::int64_t> shape, ParameterKind kind,
                                       bool adapter) const {
  Parameter p;
  p.name = std::move(name);
  p.numel = 1;
  for (const std::int64_t dim : shape) p.numel = checked_mul(p.numel, dim);
  p.shape = std::move(shape);
  p.kind = kind;
  p.module = module;
  p.adapter = adapter;
  p.trainable = trains_ && (adapter || !options_.lora || trains_whole(p.name));
  // Only the blocks' linear layers: bitsandbytes leaves the head, and embeddings are no linears.
  const Quantization weights = options_.lora ? options_.lora->base : options_.weights;
  p.quantizable = !adapter && kind == ParameterKind::linear && (!prefix_.empty() || like_blocks_);
  p.derived_linear = p.quantizable && derived_linears_;
  store_as(p, weights);
  if (options_.lora && options_.lora->base_of_experts && !adapter && kind == ParameterKind::expert)
    p.stored = weights;
  return p;
}

ParameterId ModelBuilder::push(Parameter p) {
  const auto id = static_cast<ParameterId>(model_.parameters.size());
  model_.modules[static_cast<std::size_t>(p.module)].parameters.push_back(id);
  model_.parameters.push_back(std::move(p));
  return id;
}

ParameterId ModelBuilder::add_parameter(ModuleId module, std::string name,
                                        std::vector<std::int64_t> shape, ParameterKind kind,
                                        bool adapter) {
  Parameter p = make_parameter(module, std::move(name), std::move(shape), kind, adapter);
  const auto saved = adapter ? std::nullopt : saved_part(p.name);
  original_ = kNone;
  if (!saved) return push(std::move(p));
  Parameter original = p;
  original.name.insert(*saved, ".original_module");
  original.module = static_cast<std::int32_t>(model_.modules.size());
  model_.modules.push_back({std::string(module_of(original.name)), {}});
  original_ = push(std::move(original));
  return push(trained_copy(std::move(p), *saved));
}

Parameter ModelBuilder::trained_copy(Parameter p, std::size_t saved) const {
  p.trainable = p.copy = true;
  p.quantizable = false;
  p.stored = Quantization::none;
  p.adapter = options_.lora->saved_in_fp32;
  p.name.insert(saved, ".modules_to_save");
  return p;
}

std::optional<std::size_t> ModelBuilder::saved_part(std::string_view name) const {
  if (!options_.lora || !trains_) return std::nullopt;
  const bool classifies = options_.scalar_head || options_.head.kind == HeadKind::sequence ||
                          options_.head.kind == HeadKind::token;
  return saved_module(options_.lora->saved, classifies, name);
}

bool ModelBuilder::trains_whole(std::string_view name) const {
  return options_.lora && is_inside(options_.lora->whole, name);
}

bool ModelBuilder::is_lora_target(std::string_view name) const {
  if (!options_.lora || !trains_ || saved_part(prefix_ + std::string(name) + ".weight"))
    return false;
  if (trains_whole(prefix_ + std::string(name))) return false;
  const std::string_view last = name.substr(name.rfind('.') + 1);
  const auto& taken = options_.expert_targets.taken;
  if (std::find(taken.begin(), taken.end(), last) != taken.end()) return false;
  const auto& targets = options_.lora->targets;
  // peft's word for every linear layer but the head.
  if (targets.size() == 1 && targets.front() == "all-linear")
    return !prefix_.empty() || like_blocks_;
  return std::find(targets.begin(), targets.end(), last) != targets.end();
}

EmbeddingModule ModelBuilder::embedding(std::string_view name, std::int64_t rows,
                                        std::int64_t width) {
  const std::string full = prefix_ + std::string(name);
  const bool adapted = is_lora_target(name) && options_.lora->targets.front() != "all-linear";
  EmbeddingModule m;
  m.rows = rows;
  m.width = width;
  m.module = add_module(name);
  m.weight = add_parameter(m.module, full + (adapted ? ".base_layer.weight" : ".weight"),
                           {rows, width}, ParameterKind::embedding);
  m.tied = original_ == kNone ? m.weight : original_;
  if (adapted) m.lora = add_lora(name, rows, width, ".lora_embedding_A", ".lora_embedding_B");
  return m;
}

LoraModules ModelBuilder::add_lora(std::string_view name, std::int64_t in, std::int64_t out,
                                   std::string_view a, std::string_view b) {
  const std::string full = prefix_ + std::string(name);
  LoraModules lora;
  lora.rank = options_.lora->rank;
  lora.dropout = options_.lora->dropout;
  lora.a_count = checked_mul(lora.rank, in);
  lora.b_count = checked_mul(lora.rank, out);
  lora.a_module = add_module(std::string(name) + std::string(a));
  lora.a = add_parameter(lora.a_module, full + std::string(a) + ".weight", {lora.rank, in},
                         ParameterKind::linear, true);
  lora.b_module = add_module(std::string(name) + std::string(b));
  lora.b = add_parameter(lora.b_module, full + std::string(b) + ".weight", {out, lora.rank},
                         ParameterKind::linear, true);
  return lora;
}

namespace {

bool is_head(std::string_view name) {
  return name == "lm_head" || name == "embed_out";
}

}  // namespace

std::optional<LinearModule> ModelBuilder::other_head(std::string_view name, std::int64_t in) {
  if (!is_head(name)) return std::nullopt;
  if (options_.scalar_head) return linear("score", in, 1);
  switch (options_.head.kind) {
    case HeadKind::language_model:
      break;
    case HeadKind::none:
      return LinearModule{};
    case HeadKind::sequence:
      return linear("score", in, options_.head.labels);
    case HeadKind::token:
      return linear("score", in, options_.head.labels, options_.head.bias);
  }
  return std::nullopt;
}

LinearModule ModelBuilder::linear(std::string_view name, std::int64_t in, std::int64_t out,
                                  bool bias) {
  if (const auto other = other_head(name, in)) return *other;
  const std::string full = prefix_ + std::string(name);
  const bool adapted = is_lora_target(name);
  const std::string base = adapted ? full + ".base_layer" : full;
  LinearModule m;
  m.in = in;
  m.out = out;
  m.module = add_module(name);
  m.weight = add_parameter(m.module, base + ".weight", {out, in}, ParameterKind::linear);
  const Parameter& weight = model_.parameters[static_cast<std::size_t>(m.weight)];
  m.widened = weight.widened();
  m.by_bitsandbytes = format_of(weight.stored).by_bitsandbytes();
  if (bias) m.bias = add_parameter(m.module, base + ".bias", {out}, ParameterKind::bias);
  if (!adapted) return m;
  if (options_.lora->rotation_block > 0) {
    m.rotation = add_rotation(name, in);
    return m;
  }
  m.lora = add_linear_lora(name, in, out);
  if (!options_.lora->magnitudes) return m;
  const std::string magnitude = ".lora_magnitude_vector";
  m.lora->magnitude_module = add_module(std::string(name) + magnitude);
  m.lora->magnitude = add_parameter(m.lora->magnitude_module, full + magnitude + ".weight", {out},
                                    ParameterKind::other, true);
  return m;
}

LoraModules ModelBuilder::add_linear_lora(std::string_view name, std::int64_t in,
                                          std::int64_t out) {
  const std::string own(name);
  if (!options_.joins_adapters || !joint_linear(own.substr(own.rfind('.') + 1)))
    return add_lora(name, in, out, ".lora_A", ".lora_B");
  const std::string whole = prefix_ + joined_name(name);
  const auto first = joint_.find(whole);
  if (first == joint_.end()) {
    LoraModules lora = add_lora(name, in, out, ".lora_A", ".lora_B");
    lora.joint = true;
    return joint_.emplace(whole, lora).first->second;
  }
  LoraModules lora = first->second;
  lora.b_count = checked_mul(lora.rank, out);
  lora.b_module = add_module(own + ".lora_B");
  lora.b = add_parameter(lora.b_module, prefix_ + own + ".lora_B.weight", {out, lora.rank},
                         ParameterKind::linear, true);
  return lora;
}

LoraModules ModelBuilder::add_expert_lora(const std::string& name,
                                          const std::vector<std::int64_t>& shape) {
  const std::int64_t count = shape[0], out = shape[1], in = shape[2];
  LoraModules lora;
  lora.rank = options_.lora->rank;
  lora.dropout = options_.lora->dropout;
  lora.a_module = add_module(name + ".lora_A");
  lora.a = add_parameter(lora.a_module, prefix_ + name + ".lora_A.weight", {count, lora.rank, in},
                         ParameterKind::expert, true);
  lora.b_module = add_module(name + ".lora_B");
  lora.b = add_parameter(lora.b_module, prefix_ + name + ".lora_B.weight", {count, out, lora.rank},
                         ParameterKind::expert, true);
  lora.a_count = checked_mul(checked_mul(count, lora.rank), in);
  lora.b_count = checked_mul(checked_mul(count, lora.rank), out);
  return lora;
}

/// The nearest width that divides what is turned (peft, tuners/oft/layer.py,
/// adjust_oft_parameters).
RotationModule ModelBuilder::add_rotation(std::string_view name, std::int64_t in) {
  const std::int64_t asked = std::min(options_.lora->rotation_block, in);
  std::int64_t above = asked, below = asked;
  while (in % above != 0) ++above;
  while (in % below != 0) --below;
  RotationModule rotation;
  rotation.block = asked - below <= above - asked ? below : above;
  rotation.module = add_module(std::string(name) + ".oft_R");
  rotation.weight = add_parameter(rotation.module, prefix_ + std::string(name) + ".oft_R.weight",
                                  {in / rotation.block, rotation.block * (rotation.block - 1) / 2},
                                  ParameterKind::other, true);
  return rotation;
}

void ModelBuilder::adapt_experts(ParameterId parameter, std::string_view name) {
  const Parameter& p = model_.parameters[static_cast<std::size_t>(parameter)];
  constexpr std::size_t kExpertDimensions = 3;
  const std::size_t dimensions = p.shape.size();  // a router's weight has one less
  if (!options_.lora || !trains_ || dimensions > kExpertDimensions || dimensions < 2) return;
  const std::string full = p.name;
  if (options_.joins_adapters) {
    const std::vector<std::int64_t> shape = p.shape;
    const bool joint = name.ends_with("gate_up_proj") && is_lora_target("gate_proj");
    if (p.kind == ParameterKind::expert && dimensions == kExpertDimensions &&
        (joint || is_lora_target(name)))
      adapted_.emplace_back(parameter, add_expert_lora(std::string(name), shape));
    return;
  }
  const auto& targets = options_.lora->parameters;
  if (std::none_of(targets.begin(), targets.end(), [&](const std::string& target) {
        return full == target || full.ends_with("." + target);
      }))
    return;
  const std::int64_t count = dimensions == kExpertDimensions ? p.shape[0] : 1;
  const std::int64_t out = p.shape[dimensions - 2], in = p.shape[dimensions - 1];
  const bool doubled = options_.expert_targets.doubles_gate_up && name.ends_with(".gate_up_proj");
  LoraModules lora;
  lora.rank = checked_mul(options_.lora->rank, doubled ? 2 : 1);
  const std::string own(name);
  const std::int64_t width = checked_mul(lora.rank, count);
  lora.a_module = add_module(own + ".lora_A");
  lora.a = add_parameter(lora.a_module, prefix_ + own + ".lora_A.weight", {width, in},
                         ParameterKind::linear, true);
  lora.b_module = add_module(own + ".lora_B");
  lora.b = add_parameter(lora.b_module, prefix_ + own + ".lora_B.weight", {out, width},
                         ParameterKind::linear, true);
  lora.a_count = checked_mul(width, in);
  lora.b_count = checked_mul(width, out);
  adapted_.emplace_back(parameter, lora);
}

const LoraModules* ModelBuilder::lora_of(ParameterId parameter) const {
  for (const auto& [adapted, lora] : adapted_)
    if (adapted == parameter) return &lora;
  return nullptr;
}

LinearModule ModelBuilder::conv1d(std::string_view name, std::int64_t in, std::int64_t out) {
  LinearModule m = linear(name, in, out, true);
  auto& shape = model_.parameters[static_cast<std::size_t>(m.weight)].shape;
  std::swap(shape[0], shape[1]);
  return m;
}

LinearModule ModelBuilder::tied_linear(std::string_view name, const EmbeddingModule& embedding,
                                       bool bias) {
  if (const auto other = other_head(name, embedding.width)) return *other;
  LinearModule m;
  m.in = embedding.width;
  m.out = embedding.rows;
  m.module = add_module(name);
  // A copy of a tied head is a matrix of its own; the original is the table's.
  const std::string weight = prefix_ + std::string(name) + ".weight";
  if (const auto saved = saved_part(weight)) {
    m.weight = push(trained_copy(
        make_parameter(m.module, weight, {m.out, m.in}, ParameterKind::linear, false), *saved));
  } else {
    m.weight = embedding.tied;
    model_.modules[static_cast<std::size_t>(m.module)].parameters.push_back(m.weight);
  }
  if (is_lora_target(name) && options_.lora->rotation_block == 0 && !options_.lora->magnitudes)
    m.lora = add_linear_lora(name, m.in, m.out);
  if (bias)
    m.bias = add_parameter(m.module, prefix_ + std::string(name) + ".bias", {m.out},
                           ParameterKind::bias);
  return m;
}

NormModule ModelBuilder::rms_norm(std::string_view name, std::int64_t width) {
  return layer_norm(name, width, false);
}

NormModule ModelBuilder::layer_norm(std::string_view name, std::int64_t width, bool bias) {
  const std::string full = prefix_ + std::string(name);
  NormModule m;
  m.width = width;
  m.module = add_module(name);
  m.weight = add_parameter(m.module, full + ".weight", {width}, ParameterKind::norm);
  if (bias) m.bias = add_parameter(m.module, full + ".bias", {width}, ParameterKind::norm);
  return m;
}

NormModule ModelBuilder::bare_norm(std::string_view name, std::int64_t width) {
  NormModule m;
  m.width = width;
  m.module = add_module(name);
  return m;
}

NormModule ModelBuilder::norm_of_heads(std::string_view name, std::int64_t heads,
                                       std::int64_t width) {
  NormModule m;
  m.width = width;
  m.module = add_module(name);
  m.weight = add_parameter(m.module, prefix_ + std::string(name) + ".weight", {heads, width},
                           ParameterKind::norm);
  return m;
}

ParameterId ModelBuilder::tensor(std::string_view name, std::vector<std::int64_t> shape,
                                 ParameterKind kind) {
  const std::string module_name = prefix_ + std::string(module_of(name));
  ModuleId module = kNone;
  for (std::size_t i = first_module_; i < model_.modules.size(); ++i)
    if (model_.modules[i].name == module_name) module = static_cast<ModuleId>(i);
  if (module == kNone) module = add_module(module_of(name));
  const ParameterId id = add_parameter(module, prefix_ + std::string(name), std::move(shape), kind);
  adapt_experts(id, name);
  return id;
}

void ModelBuilder::tie(ModuleId module, ParameterId parameter) {
  model_.modules[static_cast<std::size_t>(module)].parameters.push_back(parameter);
}

void ModelBuilder::freeze(ParameterId parameter) {
  model_.parameters[static_cast<std::size_t>(parameter)].trainable = false;
}

void ModelBuilder::set_no_linear(ParameterId weight) {
  Parameter& p = model_.parameters[static_cast<std::size_t>(weight)];
  p.no_linear = true;
  p.stored = Quantization::none;
}

ModuleId ModelBuilder::owner(ParameterId parameter) const {
  return model_.parameters[static_cast<std::size_t>(parameter)].module;
}

Graph& ModelBuilder::begin_segment(std::string_view name, std::int64_t repeat, bool checkpointable,
                                   bool balanced) {
  model_.segments.push_back({std::string(name), repeat, checkpointable, {}, !balanced});
  model_.segments.back().graph.set_loss(options_.loss);
  if (!options_.scalar_head) model_.segments.back().graph.set_head(options_.head);
  model_.segments.back().graph.set_kernels(options_.kernels);
  model_.segments.back().graph.set_flash_attn(options_.flash_attn);
  model_.segments.back().graph.set_fused(options_.fused);
  model_.segments.back().graph.set_widens_outputs(options_.widens_outputs);
  model_.segments.back().graph.set_clones_outputs(options_.clones_outputs);
  model_.segments.back().graph.set_picks_labels(options_.picks_labels);
  model_.segments.back().graph.set_head_loss(options_.head_loss);
  model_.segments.back().graph.set_token_loss(options_.token_loss, options_.entropy);
  model_.segments.back().graph.set_cached(options_.cached);
  model_.segments.back().graph.set_attention_again(options_.attention_again);
  return model_.segments.back().graph;
}

std::int32_t ModelBuilder::share(std::string_view name, Extent extent, bool f32) {
  Shared shared;
  shared.name = std::string(name);
  shared.f32 = f32;
  shared.extent = extent;
  shared.maker = static_cast<std::int32_t>(model_.segments.size()) - 1;
  model_.shared.push_back(std::move(shared));
  return static_cast<std::int32_t>(model_.shared.size()) - 1;
}

std::int32_t ModelBuilder::share_trained(std::string_view name, Extent extent) {
  const std::int32_t index = share(name, extent);
  model_.shared[static_cast<std::size_t>(index)].needs_grad = true;
  return index;
}

std::int32_t ModelBuilder::share_window_mask(std::int64_t window) {
  const Scale scale = options_.cached ? Scale::context_square : Scale::square;
  const std::int32_t index = share("window_mask", {1, scale});
  model_.shared[static_cast<std::size_t>(index)].mask_from = window;
  return index;
}

std::int32_t ModelBuilder::share_output(std::string_view name, Extent extent, bool passes_on) {
  const std::int32_t index = share(name, extent);
  Shared& shared = model_.shared[static_cast<std::size_t>(index)];
  shared.needs_grad = shared.is_output = true;
  shared.passes_on = passes_on;
  return index;
}

Model ModelBuilder::build() {
  close_group();
  return std::move(model_);
}

}  // namespace shardplan
