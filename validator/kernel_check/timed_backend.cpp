#include "kernel_check/timed_backend.h"

#include <algorithm>

namespace shardplan::validator {
namespace {

template <class... Tensors>
double bytes_of(const Tensors&... tensors) {
  return (static_cast<double>(tensors.bytes()) + ...);
}

Work product(const Tensor& result, std::int64_t inner, double bytes) {
  return {2.0 * static_cast<double>(result.numel()) * static_cast<double>(inner), bytes};
}

/// Two products of the lower triangle of a sequence × sequence matrix a head, or of a whole matrix
/// of queries and other keys.
double attention_flops(const Heads& heads, const OtherKeys& others) {
  const double width = 2.0 * static_cast<double>(heads.batch * heads.query_width());
  if (others.keys_values.empty())
    return width * static_cast<double>(heads.sequence) * static_cast<double>(heads.sequence);
  return 2.0 * width * static_cast<double>(others.queries.count) *
         static_cast<double>(others.keys.count);
}

}  // namespace

void TimedBackend::start() {
  timing_ = true;
  events_used_ = 0;
  timed_.clear();
}

std::map<std::string, FamilyTime> TimedBackend::stop() {
  timing_ = false;
  std::map<std::string, FamilyTime> families;
  for (const Timed& timed : timed_) {
    FamilyTime& family = families[timed.family];
    ++family.calls;
    family.seconds += inner_.seconds_between(timed.begin, timed.end);
    family.light_seconds += std::max(timed.work.share_of_peak * timed.work.flops / rates_.flops,
                                     timed.work.bytes / rates_.bandwidth);
    family.work.flops += timed.work.flops;
    family.work.bytes += timed.work.bytes;
  }
  return families;
}

Event TimedBackend::next_event() {
  if (events_used_ == events_.size()) events_.push_back(inner_.new_event());
  return events_[events_used_++];
}

template <class Operation>
void TimedBackend::time(const char* family, Work work, Operation&& operation) {
  if (!timing_) {
    operation();
    return;
  }
  const Timed timed{family, work, next_event(), next_event()};
  inner_.record(timed.begin, Stream::compute);
  operation();
  inner_.record(timed.end, Stream::compute);
  timed_.push_back(timed);
}

void TimedBackend::upload(const Tensor& to, std::span<const std::byte> from) {
  time("copies and fills", {}, [&] { inner_.upload(to, from); });
}

void TimedBackend::copy(const Tensor& to, const Tensor& from) {
  time("copies and fills", {0, bytes_of(to, from)}, [&] { inner_.copy(to, from); });
}

void TimedBackend::zero(const Tensor& x) {
  time("copies and fills", {0, bytes_of(x)}, [&] { inner_.zero(x); });
}

void TimedBackend::fill(const Tensor& x, float value) {
  time("copies and fills", {0, bytes_of(x)}, [&] { inner_.fill(x, value); });
}

void TimedBackend::fill_normal(const Tensor& x, float stddev, std::uint32_t seed,
                               std::int64_t first_element) {
  time("copies and fills", {0, bytes_of(x)},
       [&] { inner_.fill_normal(x, stddev, seed, first_element); });
}

void TimedBackend::cast(const Tensor& to, const Tensor& from) {
  time("copies and fills", {0, bytes_of(to, from)}, [&] { inner_.cast(to, from); });
}

void TimedBackend::add(const Tensor& to, const Tensor& x) {
  time("copies and fills", {0, bytes_of(to, to, x)}, [&] { inner_.add(to, x); });
}

void TimedBackend::linear_forward(const Tensor& y, const Tensor& x, const Tensor& w,
                                  const Tensor& bias) {
  time("products, forward", product(y, x.width(), bytes_of(y, x, w)),
       [&] { inner_.linear_forward(y, x, w, bias); });
}

void TimedBackend::linear_backward_input(const Tensor& dx, const Tensor& dy, const Tensor& w) {
  time("products, input gradient", product(dx, dy.width(), bytes_of(dx, dy, w)),
       [&] { inner_.linear_backward_input(dx, dy, w); });
}

void TimedBackend::linear_backward_weight(const Tensor& dw, const Tensor& dy, const Tensor& x,
                                          bool accumulate) {
  const double read = accumulate ? bytes_of(dw) : 0.0;
  time("products, weight gradient", product(dw, x.rows(), bytes_of(dw, dy, x) + read),
       [&] { inner_.linear_backward_weight(dw, dy, x, accumulate); });
}

void TimedBackend::linear_backward_bias(const Tensor& db, const Tensor& dy, bool accumulate) {
  time("bias gradient", {0, bytes_of(db, dy)},
       [&] { inner_.linear_backward_bias(db, dy, accumulate); });
}

void TimedBackend::multiply_columns(const ColumnProduct& o) {
  const auto elements = [](const Columns& x) {
    return static_cast<double>(x.of.rows()) * static_cast<double>(x.count);
  };
  const std::int64_t inner = o.a_transposed ? o.a.of.rows() / o.bands : o.a.count;
  const double moved = elements(o.a) + elements(o.b) + (o.accumulate ? 2 : 1) * elements(o.c);
  time("products of adapters, experts",
       {2.0 * elements(o.c) * static_cast<double>(inner),
        moved * static_cast<double>(size_of(o.c.of.dtype))},
       [&] { inner_.multiply_columns(o); });
}

void TimedBackend::widen(const Tensor& to, const Nf4Matrix& from) {
  time("4 bits to elements", {0, bytes_of(to, from.codes, from.scales)},
       [&] { inner_.widen(to, from); });
}

void TimedBackend::quantize(const Nf4Matrix& to, const Tensor& from) {
  // The scales of a byte take two more passes over the elements.
  const double passes = to.outer.empty() ? 1 : 3;
  time("elements to 4 bits", {0, passes * bytes_of(from) + bytes_of(to.codes, to.scales)},
       [&] { inner_.quantize(to, from); });
}

void TimedBackend::cast_fp8(const Fp8Cast& o) {
  const double read = bytes_of(o.from) * (o.scaled ? 1 : 2);
  const double written = bytes_of(o.to.values, o.turned.values);
  time(o.turned.values.empty() ? "casts to fp8" : "casts to fp8, turned", {0, read + written},
       [&] { inner_.cast_fp8(o); });
}

void TimedBackend::find_magnitudes(const Fp8Magnitudes& o) {
  time("magnitudes for fp8", {0, bytes_of(o.from, o.to)}, [&] { inner_.find_magnitudes(o); });
}

void TimedBackend::join_scales(const Fp8JointScales& o) {
  time("scales of ranks for fp8", {0, bytes_of(o.found.of, o.to)}, [&] { inner_.join_scales(o); });
}

void TimedBackend::multiply_fp8(const Fp8Product& o) {
  // Their units have twice the rate of 16 bits.
  Work work = product(o.c, o.a.values.width(), bytes_of(o.a.values, o.b.values, o.c));
  work.share_of_peak = 0.5;
  const bool slopes = o.a.values.dtype == DType::e5m2;
  time(o.fast   ? "products in fp8, fast"
       : slopes ? "products in fp8, e5m2"
                : "products in fp8",
       work, [&] { inner_.multiply_fp8(o); });
}

void TimedBackend::norm_forward(const NormForward& o) {
  const double residual = o.branch.empty() ? 0.0 : bytes_of(o.branch, o.sum);
  time("norms, forward", {0, bytes_of(o.x, o.out) + residual}, [&] { inner_.norm_forward(o); });
}

void TimedBackend::norm_backward(const NormBackward& o) {
  const double read = o.accumulate_dx ? bytes_of(o.dx) : 0.0;
  time("norms, backward", {0, bytes_of(o.dx, o.dout, o.x) + read},
       [&] { inner_.norm_backward(o); });
}

void TimedBackend::head_norm_forward(const HeadNormForward& o) {
  time("head norms, forward", {0, bytes_of(o.qkv, o.out)}, [&] { inner_.head_norm_forward(o); });
}

void TimedBackend::head_norm_backward(const HeadNormBackward& o) {
  time("head norms, backward", {0, bytes_of(o.qkv, o.dqkv, o.dqkv)},
       [&] { inner_.head_norm_backward(o); });
}

void TimedBackend::rotary(const Tensor& qkv, const Tensor& table, const Heads& heads,
                          bool inverse) {
  const double turned = static_cast<double>(heads.query_heads + heads.key_value_heads) /
                        static_cast<double>(heads.query_heads + 2 * heads.key_value_heads);
  time("rotary", {0, 2.0 * turned * bytes_of(qkv)},
       [&] { inner_.rotary(qkv, table, heads, inverse); });
}

void TimedBackend::attention_forward(const AttentionForward& o) {
  time("attention, forward", {attention_flops(o.heads, o.others), bytes_of(o.qkv, o.out)},
       [&] { inner_.attention_forward(o); });
}

void TimedBackend::attention_backward(const AttentionBackward& o) {
  time("attention, backward",
       {2.5 * attention_flops(o.heads, o.others), bytes_of(o.qkv, o.dqkv, o.out, o.dout)},
       [&] { inner_.attention_backward(o); });
}

void TimedBackend::merge_attention(const AttentionMerge& o) {
  time("attention, merging", {0, bytes_of(o.sum, o.sum, o.part)},
       [&] { inner_.merge_attention(o); });
}

void TimedBackend::copy_columns(const ColumnCopy& o) {
  const double elements = static_cast<double>(o.to.rows() / o.sequence * o.rows.count * o.columns);
  const double written = elements * static_cast<double>(size_of(o.to.dtype));
  time(
      "copies of columns",
      {0, elements * static_cast<double>(size_of(o.from.dtype)) + (o.accumulate ? 2 : 1) * written},
      [&] { inner_.copy_columns(o); });
}

void TimedBackend::activation_forward(Activation kind, const Tensor& y, const Tensor& x) {
  time("activations, forward", {0, bytes_of(x, y)}, [&] { inner_.activation_forward(kind, y, x); });
}

void TimedBackend::activation_backward(Activation kind, const Tensor& x, const Tensor& dy) {
  time("activations, backward", {0, bytes_of(x, x, dy)},
       [&] { inner_.activation_backward(kind, x, dy); });
}

void TimedBackend::embedding_forward(const Tensor& y, const Tensor& tokens, const Tensor& table,
                                     const Tensor& positions, const RowPlaces& places) {
  time("embedding", {0, bytes_of(y, y)},
       [&] { inner_.embedding_forward(y, tokens, table, positions, places); });
}

void TimedBackend::embedding_backward(const Tensor& dtable, const Tensor& dpositions,
                                      const Tensor& dy, const Tensor& tokens,
                                      const RowPlaces& places) {
  time("embedding", {0, bytes_of(dy, dy, dy)},
       [&] { inner_.embedding_backward(dtable, dpositions, dy, tokens, places); });
}

void TimedBackend::cross_entropy(const CrossEntropy& o) {
  time("loss", {0, bytes_of(o.logits, o.logits)}, [&] { inner_.cross_entropy(o); });
}

void TimedBackend::loss_parts(const LossParts& o) {
  time("loss", {0, bytes_of(o.logits)}, [&] { inner_.loss_parts(o); });
}

void TimedBackend::joined_cross_entropy(const JoinedCrossEntropy& o) {
  time("loss", {0, bytes_of(o.loss.logits, o.loss.logits)},
       [&] { inner_.joined_cross_entropy(o); });
}

void TimedBackend::route_forward(const RouteForward& o) {
  time("routers", {0, bytes_of(o.logits, o.weights, o.experts)}, [&] { inner_.route_forward(o); });
}

void TimedBackend::route_backward(const RouteBackward& o) {
  time("routers", {0, bytes_of(o.logits, o.logits, o.dweights)}, [&] { inner_.route_backward(o); });
}

void TimedBackend::place_rows(const PlaceRows& o) {
  time("routers", {0, bytes_of(o.experts, o.places, o.rows)}, [&] { inner_.place_rows(o); });
}

void TimedBackend::combine_rows(const CombineRows& o) {
  const double read = o.accumulate ? bytes_of(o.out) : 0.0;
  time("rows of experts", {0, bytes_of(o.out, o.slots) + read}, [&] { inner_.combine_rows(o); });
}

void TimedBackend::combine_backward(const CombineBackward& o) {
  time("rows of experts", {0, bytes_of(o.slots, o.slots, o.dout)},
       [&] { inner_.combine_backward(o); });
}

void TimedBackend::balance_loss(const Tensor& loss, const Tensor& balance, float scale) {
  time("routers", {0, bytes_of(balance)}, [&] { inner_.balance_loss(loss, balance, scale); });
}

void TimedBackend::sum(const Tensor& out, const Tensor& x, bool accumulate) {
  time("sums", {0, bytes_of(x)}, [&] { inner_.sum(out, x, accumulate); });
}

void TimedBackend::squared_norm(const Tensor& out, const Tensor& x, bool accumulate) {
  time("sums", {0, bytes_of(x)}, [&] { inner_.squared_norm(out, x, accumulate); });
}

void TimedBackend::adamw(const AdamW& o) {
  const double home = o.master.empty() ? bytes_of(o.parameter) : bytes_of(o.master, o.master);
  const double moments = 2.0 * bytes_of(o.first_moment, o.second_moment);
  time("AdamW", {0, home + moments + bytes_of(o.parameter, o.gradient)}, [&] { inner_.adamw(o); });
}

}  // namespace shardplan::validator
