// Hunyuan A13B (models/hunyuan_v1_moe): the dense model's attention, experts and one that every
// token takes.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "model/architectures/architectures.h"
#include "model/architectures/decoder.h"

namespace shardplan {
namespace {

/// A number, or a list of one for each layer, which are equal in all published files.
std::int64_t same_for_all(const ModelConfig& c, std::string_view key, std::int64_t fallback) {
  if (!c.is_list(key)) return c.count({key}, fallback);
  const std::vector<std::int64_t> each = c.counts(key);
  if (each.empty() ||
      std::any_of(each.begin(), each.end(), [&](std::int64_t n) { return n != each.front(); }))
    c.fail(key, "layers with different numbers are not supported", "one number for all layers");
  return each.front();
}

}  // namespace

Model build_hunyuan_v1_moe(const ModelConfig& c, const BuildOptions& options) {
  DecoderDescription d = read_hunyuan(c);
  if (c.is_list("num_experts"))
    c.fail("num_experts", "a number for each layer is not supported", "one number");
  SparseMlpShape s{.hidden = d.hidden,
                   .experts = c.count({"num_experts", "num_local_experts"}, 1),
                   .ffn = d.ffn,
                   .shared_ffn = d.ffn,
                   .normalize = true,
                   .shared_runs_first = true,
                   .router = "gate.wg",
                   .shared = "shared_mlp",
                   .router_is = RouterIs::linear};
  s.top_k = same_for_all(c, c.has("moe_topk") ? "moe_topk" : "num_experts_per_tok", 1);
  if (s.top_k > s.experts)
    c.fail("moe_topk", "more experts per token than experts", fmt::format("at most {}", s.experts));
  make_sparse_from(d, s, 0);
  note_router_loss(d.assumed, c);
  return build_decoder(d, options);
}

}  // namespace shardplan
