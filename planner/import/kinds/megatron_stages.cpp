#include "import/kinds/megatron_stages.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <vector>

#include "import/known_layers.h"

namespace shardplan::importing {
namespace {

constexpr std::int64_t kMostParts = 4096;

std::int64_t number(const Key& key, std::string_view name, std::int64_t otherwise) {
  const Json* value = key.other(name);
  return value != nullptr && value->is_number_integer() ? value->get<std::int64_t>() : otherwise;
}

std::int64_t stages_of(const Key& key) {
  return number(key, "pipeline_model_parallel_size", 1);
}

/// A layout, written out: each piece, a letter or what brackets hold, as often as "*" says.
class Layout {
 public:
  Layout(const Key& key, std::string text) : key_(key), text_(std::move(text)) {}

  /// Blocks of each part.
  std::vector<std::int64_t> blocks() {
    read_row(text_, 0);
    if (predicted_in_ > 0 && predicted_in_ != parts_.size())
      refuse("layers of multi-token prediction ('m') before the last part are not estimated");
    return parts_;
  }

 private:
  [[noreturn]] void refuse(std::string message) const {
    key_.refuse(std::move(message), "a layout such as Et*2|(tt|)*5t|L");
  }

  void read_row(std::string_view row, int depth) {
    while (!row.empty()) {
      std::string_view piece = row.substr(0, 1);
      row.remove_prefix(1);
      const bool group = piece == "(";
      if (group) {
        const std::size_t end = row.find(')');
        if (end == std::string_view::npos || depth > 0) refuse("brackets do not match");
        piece = row.substr(0, end);
        row.remove_prefix(end + 1);
      }
      for (std::int64_t left = times(row); left > 0; --left)
        if (group)
          read_row(piece, depth + 1);
        else
          add(piece.front());
    }
  }

  /// "*7" in front of `row`, which it leaves behind; else once.
  std::int64_t times(std::string_view& row) const {
    if (!row.starts_with('*')) return 1;
    std::int64_t count = 0;
    const char* first = row.data() + 1;
    const auto [end, error] = std::from_chars(first, row.data() + row.size(), count);
    if (error != std::errc() || count < 1 || count > kMostParts) refuse("'*' wants a number");
    row.remove_prefix(static_cast<std::size_t>(end - row.data()));
    return count;
  }

  void add(char letter) {
    if (letter == '|' && static_cast<std::int64_t>(parts_.size()) >= kMostParts)
      refuse("too many stages");
    if (letter == '|') return parts_.push_back(0);
    if (letter == 't' && ++parts_.back() <= kMostParts) return;
    if (letter == 'm') return void(predicted_in_ = parts_.size());
    if (letter != 'E' && letter != 'L' && letter != ',') refuse(fmt::format("found '{}'", letter));
  }

  const Key& key_;
  std::string text_;
  std::vector<std::int64_t> parts_{0};
  std::size_t predicted_in_ = 0;  ///< the part that has "m", counted from 1
};

}  // namespace

void read_end_stages(Key& key) {
  const std::int64_t stages = stages_of(key);
  const std::int64_t layers = number(key, "num_layers", known_layers(key.recipe(), key.document()));
  const std::int64_t first = number(key, "decoder_first_pipeline_num_layers", 0);
  const std::int64_t last = number(key, "decoder_last_pipeline_num_layers", 0);
  if (first > 0 && last > 0 && key.path() == "decoder_last_pipeline_num_layers")
    return key.ignore("taken with decoder_first_pipeline_num_layers");
  if (layers == 0)
    key.refuse("the layers are not in the arguments",
               "num-layers beside it, or a model that is known, in the file or by --model");
  if (number(key, "num_layers_per_virtual_pipeline_stage", 0) > 0 ||
      number(key, "num_virtual_stages_per_pipeline_rank", 1) > 1)
    key.refuse("uneven ends of an interleaved pipeline are not read",
               "pipeline-model-parallel-layout, which says each part");
  const std::int64_t equal = stages - (first > 0 ? 1 : 0) - (last > 0 ? 1 : 0);
  const std::int64_t rest = layers - first - last;
  if (equal < 0 || rest < 0 || (equal == 0 ? rest > 0 : rest % equal != 0))
    key.refuse(fmt::format("{} layers are left for {} stages", rest, equal),
               "numbers that leave equal parts");
  std::vector<std::int64_t> blocks(static_cast<std::size_t>(stages), equal > 0 ? rest / equal : 0);
  if (first > 0) blocks.front() = first;
  if (last > 0) blocks.back() = last;
  key.take("/parallel/stage_layers", blocks);
}

void read_stage_layout(Key& key) {
  const std::int64_t stages = stages_of(key);
  const std::vector<std::int64_t> blocks = Layout(key, key.text()).blocks();
  const auto parts = static_cast<std::int64_t>(blocks.size());
  if (parts % stages != 0)
    key.refuse(fmt::format("{} parts for {} stages", parts, stages), "a multiple of the stages");
  key.take("/parallel/stage_layers", blocks);
  if (parts > stages) key.take("/parallel/virtual_pipeline", parts / stages);
}

}  // namespace shardplan::importing
