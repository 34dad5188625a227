#include "model/architectures/images.h"

#include <fmt/format.h>

#include "model/architectures/counted.h"

namespace shardplan {
namespace {

/// An output that later segments read by its number in Model::shared.
Shared output_of(const Segment& segment, std::string name, std::size_t maker) {
  Shared shared;
  shared.name = std::move(name);
  shared.extent = segment.graph.value(segment.graph.output()).extent;
  shared.maker = static_cast<std::int32_t>(maker);
  shared.needs_grad = shared.is_output = true;
  return shared;
}

ValueId input_of(Graph& g, const Model& model, std::int32_t shared) {
  return g.shared_input(shared, model.shared[static_cast<std::size_t>(shared)].extent);
}

/// Of a network whose text model Megatron Core runs (mcore-bridge 1.6, model/mm_gpts/utils.py,
/// HuggingFaceVit; model/mm_gpt_model.py, _patch_word_embeddings): every tensor-parallel GPU runs
/// the whole tower on whole samples, Transformer Engine multiplies nothing of it, and Megatron
/// Core recomputes none of its layers.
void leave_to_transformers(Model& outer) {
  for (Parameter& p : outer.parameters) p.quantizable = false;
  for (Segment& s : outer.segments) {
    s.whole = true;
    s.checkpointable = false;
  }
}

/// The rows of images; one of `1 + deep` parts of them.
ValueId rows_of(Graph& g, const Model& model, std::int32_t features, std::int64_t deep) {
  const ValueId all = input_of(g, model, features);
  const Extent extent = g.value(all).extent;
  return deep == 0 ? all : g.view(all, {extent.per / (1 + deep), extent.scale});
}

/// inputs_embeds.masked_scatter(mask, features).
Segment placed_rows(const Model& model, std::int32_t tokens, std::int32_t features,
                    std::int64_t deep) {
  Segment segment{"images among tokens", 1, false, {}};
  Graph& g = segment.graph;
  const ValueId embeds = input_of(g, model, tokens);
  const ValueId rows = rows_of(g, model, features, deep);
  Op op{OpKind::place_elements, {embeds, g.map(OpKind::to_like, rows, embeds), kNone}};
  op.side = {1, g.value(embeds).extent.scale};
  g.set_output(g.op(op, g.value(embeds).extent));
  return segment;
}

/// image_embeds[mask] = features[block, row]; torch.where(mask, image_embeds, inputs_embeds). The
/// zeros that the rows are put into are one more tensor of the same size.
Segment chosen_rows(const Model& model, std::int32_t tokens, std::int32_t features) {
  Segment segment{"images among tokens", 1, false, {}};
  Graph& g = segment.graph;
  const ValueId embeds = input_of(g, model, tokens);
  const Extent all = g.value(embeds).extent;
  const ValueId rows = input_of(g, model, features);
  const Extent each = g.value(rows).extent;
  Op pick{OpKind::gather_rows, {rows, kNone, kNone}};
  pick.side = {2 * (each.per / model.facts.hidden), each.scale};
  const ValueId zeros = g.map(OpKind::copy, embeds);
  Op op{OpKind::place_elements, {embeds, g.op(pick, each), kNone}};
  op.side = {1, all.scale};
  const ValueId out = g.op(op, all);
  g.hold(zeros, out);
  g.set_output(out);
  return segment;
}

/// hidden_states[mask] + features, put in the places of a copy (_deepstack_process).
Segment adding(const Model& model, std::int32_t features, std::int64_t deep, std::int64_t hidden) {
  Segment segment{"images among hidden states", 1, false, {}};
  Graph& g = segment.graph;
  const ValueId x = g.chained_input({hidden, Scale::tokens});
  const ValueId rows = rows_of(g, model, features, deep);
  const ValueId own = g.op({OpKind::gather_rows, {x, kNone, kNone}}, g.value(rows).extent);
  const ValueId sum = g.map(OpKind::add, own, g.map(OpKind::to_like, rows, x));
  g.set_output(g.op({OpKind::place_rows, {x, sum, kNone}}, g.value(x).extent));
  return segment;
}

/// The segment that looks tokens up for the layers: the last one before them.
std::size_t token_lookup(const Model& text) {
  std::size_t found = 0;
  while (found + 1 < text.segments.size() && !text.segments[found + 1].checkpointable) ++found;
  return found;
}

}  // namespace

bool tower_trains(const BuildOptions& options) {
  return projector_trains(options) && options.images.frozen == FrozenParts::nothing;
}

bool projector_trains(const BuildOptions& options) {
  if (options.counts_only) return true;
  return options.images.per_sample > 0 && options.images.frozen != FrozenParts::tower_and_projector;
}

bool reads_images(const ModelConfig& c, const BuildOptions& options, TowerCaller caller) {
  if (options.counts_only) return false;
  if (options.cached && options.images.per_sample > 0)
    c.fail("model_type", "a network that reads images is described for training alone",
           "its text model, or workload.kind train");
  const bool bridged =
      caller == TowerCaller::mcore_bridge && options.kernels == KernelSet::megatron;
  if (options.kernels != KernelSet::eager && !bridged)
    c.fail("model_type", "a network that reads images is described as transformers runs it",
           "framework single, ddp, fsdp1, fsdp2 or deepspeed");
  return options.images.per_sample > 0;
}

BuildOptions tower_options(BuildOptions options) {
  if (options.kernels != KernelSet::megatron) return options;
  options.kernels = KernelSet::eager;
  options.attention = AttentionKind::sdpa;
  options.attention_again = options.joins_adapters = false;
  return options;
}

std::int64_t fixed_tokens(const ModelConfig& c, const BuildOptions& options, std::int64_t tokens) {
  if (options.images.tokens != 0 && options.images.tokens != tokens)
    throw InputError(
        {.file = c.file(),
         .key = "workload.image_tokens",
         .message = fmt::format("found {}, but each image of this network is {} tokens",
                                options.images.tokens, tokens),
         .expected = fmt::format("{}, or nothing", tokens)});
  return tokens;
}

ImagePieces pieces_of_image(const ModelConfig& c, const BuildOptions& options, ModelFacts& facts,
                            std::int64_t each, std::int64_t most) {
  const std::int64_t said = options.images.tokens;
  if (said == 0) {
    const ImagePieces image{checked_mul(each, most), most};
    facts.assumed.push_back(
        fmt::format("{} tokens for an image: {} pieces of {}, the most that the processor's class "
                    "makes by default",
                    image.tokens, most, each));
    return image;
  }
  if (said % each != 0)
    throw InputError(
        {.file = c.file(),
         .key = "workload.image_tokens",
         .message = fmt::format("found {}, but this network sees images in pieces of {} tokens",
                                said, each),
         .expected = fmt::format("a multiple of {}", each)});
  return {said, said / each};
}

Model with_images(Model outer, Model text, const ImageFacts& image, std::int64_t deep,
                  ImagePlacing placing) {
  const bool described = !outer.segments.empty();
  const bool bridged = !text.segments.empty() && text.segments.front().graph.fuses();
  if (bridged) {
    leave_to_transformers(outer);
    text.facts.assumed.emplace_back(
        "the tower as mcore-bridge 1.6 and mcore_adapter run it, whole on each GPU of the first "
        "stage, by transformers' code: no run confirms it");
  }
  std::vector<Segment> tower = std::exchange(outer.segments, {});
  for (Segment& s : tower) s.of_images = true;
  std::vector<Shared> tables = std::exchange(outer.shared, {});
  Model all = joined(std::move(outer), std::move(text));
  all.facts.image = image;
  all.facts.image.has_tower = true;
  if (!described) {
    all.facts.image.tokens = 0;
    return all;
  }
  // Tokens are looked up, then the tower runs; what the text model makes beside that follows.
  const std::size_t lookup = token_lookup(all);
  const std::size_t placed = lookup + tower.size() + 1;
  for (Shared& s : all.shared)
    if (static_cast<std::size_t>(s.maker) >= lookup)
      s.maker += static_cast<std::int32_t>(placed - lookup);
  for (Segment& s : all.segments) s.graph.renumber(0, 0, static_cast<std::int32_t>(tables.size()));
  for (Shared& s : tables) s.maker += static_cast<std::int32_t>(lookup + 1);
  all.shared.insert(all.shared.begin(), tables.begin(), tables.end());
  const auto shared = static_cast<std::int32_t>(all.shared.size());
  all.shared.push_back(output_of(all.segments[lookup], "token embeddings", lookup));
  all.shared.back().passes_on = true;
  all.shared.push_back(output_of(tower.back(), "image features", placed - 1));
  all.shared.back().read_along = deep > 0;
  const auto behind = [&](std::int64_t segments) {
    return all.segments.begin() + static_cast<std::ptrdiff_t>(lookup) + 1 + segments;
  };
  for (std::int64_t i = 0; i < deep; ++i)  // behind the layers 0, 1, ...
    all.segments.insert(behind(1 + 2 * i), adding(all, shared + 1, deep, all.facts.hidden));
  tower.push_back(placing == ImagePlacing::chosen ? chosen_rows(all, shared, shared + 1)
                                                  : placed_rows(all, shared, shared + 1, deep));
  tower.back().whole = bridged;
  all.segments.insert(behind(0), std::make_move_iterator(tower.begin()),
                      std::make_move_iterator(tower.end()));
  return all;
}

}  // namespace shardplan
