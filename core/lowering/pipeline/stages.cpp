#include "lowering/pipeline/stages.h"

#include <algorithm>
#include <numeric>

#include "parallel/degrees.h"

namespace shardplan {
namespace {

std::size_t at(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

/// Marks the parameters that a segment uses.
void mark_used(const Segment& segment, std::vector<bool>& used) {
  for (const Op& op : segment.graph.ops())
    for (const ParameterId id : {op.weight, op.bias})
      if (id != kNone) used[static_cast<std::size_t>(id)] = true;
}

std::int64_t elements_of(const Model& model, const Segment& segment) {
  std::vector<bool> used(model.parameters.size(), false);
  mark_used(segment, used);
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < used.size(); ++i)
    if (used[i]) sum += model.parameters[i].numel;
  return sum;
}

/// The network as a list of layers to balance: what comes before the blocks, each block, the rest.
struct Layers {
  std::int64_t front = 0, back = 0;
  std::vector<std::int64_t> blocks;
};

Layers layers_of(const Model& model) {
  Layers layers;
  for (const Segment& segment : model.segments) {
    const std::int64_t elements = elements_of(model, segment);
    if (segment.is_block())
      layers.blocks.insert(layers.blocks.end(), at(segment.repeat), elements);
    else
      (layers.blocks.empty() ? layers.front : layers.back) += elements * segment.repeat;
  }
  return layers;
}

/// Fills `parts` from the front, none above `most`. Empty if they do not suffice.
std::vector<std::int64_t> filled(const Layers& layers, std::int64_t parts, std::int64_t most) {
  std::vector<std::int64_t> counts(at(parts), 0);
  std::int64_t part = 0, load = layers.front;
  const auto blocks = static_cast<std::int64_t>(layers.blocks.size());
  if (load > most) return {};
  for (std::int64_t i = 0; i < blocks; ++i) {
    const std::int64_t weight = layers.blocks[at(i)];
    const bool must_leave = blocks - i <= parts - 1 - part && counts[at(part)] > 0;
    if (load + weight > most || must_leave) {
      if (++part == parts || weight > most) return {};
      load = 0;
    }
    load += weight;
    ++counts[at(part)];
  }
  if (part < parts - 1) return {};
  return load + layers.back > most ? std::vector<std::int64_t>{} : counts;
}

/// The largest share as small as whole blocks allow (deepspeed/runtime/utils.py,
/// partition_balanced).
std::vector<std::int64_t> balanced(const Layers& layers, std::int64_t parts) {
  std::int64_t low = 0;
  std::int64_t high =
      std::accumulate(layers.blocks.begin(), layers.blocks.end(), layers.front + layers.back);
  while (low + 1 < high) {
    const std::int64_t middle = low + (high - low) / 2;
    (filled(layers, parts, middle).empty() ? low : high) = middle;
  }
  return filled(layers, parts, high);
}

/// Whether what follows a block belongs to it: other blocks come after it.
bool follows_block(const Model& model, std::size_t segment) {
  const auto begin = model.segments.begin();
  const auto at = begin + static_cast<std::ptrdiff_t>(segment);
  const auto is_block = [](const Segment& s) { return s.is_block(); };
  return !at->is_block() && std::any_of(begin, at, is_block) &&
         std::any_of(at, model.segments.end(), is_block);
}

/// The blocks [first, first + count) as repeats of segments, with what stands between them behind
/// the block before it.
void add_blocks(const Model& model, std::int64_t first, std::int64_t count,
                std::vector<SegmentRepeat>& repeats) {
  std::int64_t begin = 0;
  for (std::size_t s = 0; s < model.segments.size(); ++s) {
    const Segment& segment = model.segments[s];
    if (follows_block(model, s) && first < begin && begin <= first + count)
      repeats.push_back({s, segment.repeat});
    if (!segment.is_block()) continue;
    const std::int64_t end = begin + segment.repeat;
    const std::int64_t here = std::min(end, first + count) - std::max(begin, first);
    if (here > 0) repeats.push_back({s, here, first <= begin});
    begin = end;
  }
}

/// What comes before the blocks, or after them.
void add_ends(const Model& model, bool front, std::vector<SegmentRepeat>& repeats) {
  bool blocks_seen = false;
  for (std::size_t s = 0; s < model.segments.size(); ++s) {
    const Segment& segment = model.segments[s];
    blocks_seen = blocks_seen || segment.is_block();
    if (!segment.is_block() && blocks_seen != front && !follows_block(model, s))
      repeats.push_back({s, segment.repeat});
  }
}

}  // namespace

std::vector<std::int64_t> blocks_of_chunks(const Model& model, const Parallel& p) {
  if (!p.stage_layers.empty()) return p.stage_layers;
  const std::int64_t chunks = p.pipeline * p.virtual_pipeline;
  if (p.balance == StageBalance::parameters) return balanced(layers_of(model), chunks);
  const std::int64_t ends = p.balance == StageBalance::blocks_and_ends ? 2 : 0;
  std::vector<std::int64_t> counts(at(chunks), (block_count(model) + ends) / chunks);
  for (std::int64_t c = 0; c < (block_count(model) + ends) % chunks; ++c) ++counts[at(c)];
  if (ends > 0) {
    --counts.front();
    --counts.back();
  }
  return counts;
}

std::int64_t fewest_blocks(const Model& model, const Parallel& p) {
  const std::vector<std::int64_t> chunks = blocks_of_chunks(model, p);
  std::vector<std::int64_t> stages(at(p.pipeline));
  for (std::size_t c = 0; c < chunks.size(); ++c)
    stages[at(p.stage_of_chunk(static_cast<std::int64_t>(c)))] += chunks[c];
  return *std::ranges::min_element(stages);
}

Stage stage_of(const Model& model, const Parallel& p, std::int64_t index) {
  const std::vector<std::int64_t> blocks = blocks_of_chunks(model, p);
  const auto chunks = static_cast<std::int64_t>(blocks.size());
  Stage stage;
  stage.index = index;
  std::int64_t first = 0;
  for (std::int64_t c = 0; c < chunks; ++c) {
    if (p.stage_of_chunk(c) == index) {
      StageChunk chunk{{}, c == 0, c == chunks - 1};
      if (chunk.first) add_ends(model, true, chunk.repeats);
      add_blocks(model, first, blocks[at(c)], chunk.repeats);
      if (chunk.last) add_ends(model, false, chunk.repeats);
      stage.chunks.push_back(std::move(chunk));
    }
    first += blocks[at(c)];
  }
  return stage;
}

Stage stage_of_rank(const Model& model, const Plan& plan, std::int64_t rank) {
  return stage_of(model, plan.parallel, rank / (plan.cluster.world() / plan.parallel.pipeline));
}

std::vector<std::int64_t> distinct_stages(const Model& model, const Parallel& p) {
  if (p.pipeline == 1) return {0};
  const std::vector<std::int64_t> blocks = blocks_of_chunks(model, p);
  std::vector<std::int64_t> stages{0}, seen;
  for (std::int64_t k = 1; k + 1 < p.pipeline; ++k) {
    std::int64_t count = 0;
    for (std::int64_t c = 0; c < static_cast<std::int64_t>(blocks.size()); ++c)
      if (p.stage_of_chunk(c) == k) count += blocks[at(c)];
    if (std::find(seen.begin(), seen.end(), count) != seen.end()) continue;
    seen.push_back(count);
    stages.push_back(k);
  }
  stages.push_back(p.pipeline - 1);
  return stages;
}

namespace {

/// Parameters of towers that the job gives nothing to run on, or that nothing reads: they go with
/// the others to the first stage.
std::vector<bool> idle_parameters(const Model& model, const Stage& stage) {
  std::vector<bool> used(model.parameters.size(), true);
  const bool first = std::any_of(stage.chunks.begin(), stage.chunks.end(),
                                 [](const StageChunk& chunk) { return chunk.first; });
  if (first && model.facts.image.has_tower) {
    used.assign(used.size(), false);
    for (const Segment& segment : model.segments) mark_used(segment, used);
  }
  used.flip();
  return used;
}

}  // namespace

Model parameters_of(const Model& model, const Stage& stage) {
  Model part;
  part.facts = model.facts;
  part.parameters = model.parameters;
  part.modules = model.modules;
  part.shared = model.shared;
  // How often each parameter is there: those of blocks once a block.
  std::vector<std::int64_t> times(model.parameters.size(), 0);
  for (const StageChunk& chunk : stage.chunks)
    for (const SegmentRepeat& repeat : chunk.repeats) {
      std::vector<bool> used(model.parameters.size(), false);
      const Segment& segment = model.segments[repeat.segment];
      const bool each = segment.is_block() || (segment.of_images && segment.repeat > 1);
      mark_used(segment, used);
      for (std::size_t i = 0; i < used.size(); ++i)
        if (used[i]) times[i] = each ? times[i] + repeat.count : 1;
    }
  const std::vector<bool> idle = idle_parameters(model, stage);
  for (const ParameterGroup& group : model.groups)
    for (std::int32_t i = group.first; i < group.first + group.count; ++i) {
      const std::int64_t repeat = idle[at(i)] ? group.repeat : times[at(i)];
      if (repeat == 0) continue;
      ParameterGroup* last = part.groups.empty() ? nullptr : &part.groups.back();
      if (last != nullptr && last->repeat == repeat && last->first + last->count == i)
        ++last->count;
      else
        part.groups.push_back({i, 1, repeat, group.start});
    }
  return part;
}

}  // namespace shardplan
