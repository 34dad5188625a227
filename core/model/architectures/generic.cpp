#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "model/architectures/architectures.h"
#include "model/architectures/plain.h"

namespace shardplan {
namespace {

constexpr std::int64_t kVocabulary = 32000;
constexpr std::int64_t kHeadDim = 128;
constexpr double kSmallest = 1e7, kLargest = 1e13;
constexpr double kTolerance = 0.02;
/// hidden / layers of Llama 7B and 13B; larger models are deeper, which the tolerance allows.
constexpr double kAspect = 128;

struct Shape {
  std::int64_t hidden = 0, layers = 0, ffn = 0;
  double parameters = 0;
};

/// 8/3 of the hidden size to the nearest multiple of 256, as SwiGLU blocks have.
std::int64_t ffn_of(std::int64_t hidden) {
  return std::max<std::int64_t>(256, (hidden * 8 / 3 + 128) / 256 * 256);
}

Shape shape_of(std::int64_t hidden, double wanted) {
  Shape s;
  s.hidden = hidden;
  s.ffn = ffn_of(hidden);
  const auto h = static_cast<double>(hidden), f = static_cast<double>(s.ffn);
  const double layer = 4 * h * h + 3 * h * f + 2 * h;
  const double outside = 2.0 * kVocabulary * h + h;
  s.layers = std::max<std::int64_t>(1, std::llround((wanted - outside) / layer));
  s.parameters = outside + static_cast<double>(s.layers) * layer;
  return s;
}

/// From one width that is tried to the next. GPUs divide heads: wide networks have a multiple of 8,
/// narrower ones an even number.
std::int64_t step_of(std::int64_t hidden) {
  if (hidden < 8 * kHeadDim) return kHeadDim;
  return hidden < 32 * kHeadDim ? 2 * kHeadDim : 8 * kHeadDim;
}

/// Among shapes within the tolerance the one whose width and depth are most usual; else the
/// nearest in size.
Shape choose(double wanted) {
  const auto error = [&](const Shape& s) { return std::abs(s.parameters / wanted - 1); };
  const auto oddness = [](const Shape& s) {
    return std::abs(
        std::log(static_cast<double>(s.hidden) / static_cast<double>(s.layers) / kAspect));
  };
  Shape best;
  for (std::int64_t hidden = kHeadDim; hidden <= 1 << 17; hidden += step_of(hidden)) {
    const Shape s = shape_of(hidden, wanted);
    if (best.hidden == 0) {
      best = s;
      continue;
    }
    const bool fits = error(s) <= kTolerance, best_fits = error(best) <= kTolerance;
    const bool better =
        fits == best_fits ? (fits ? oddness(s) < oddness(best) : error(s) < error(best)) : fits;
    if (better) best = s;
  }
  return best;
}

}  // namespace

std::optional<double> parse_model_size(std::string_view text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  const bool digits =
      !text.empty() && text.front() >= '0' && text.front() <= '9';  // no "inf", "nan"
  if (!digits || code != std::errc() || stop + 1 != end || number <= 0) return std::nullopt;
  switch (*stop) {
    case 'm':
    case 'M':
      return number * 1e6;
    case 'b':
    case 'B':
      return number * 1e9;
    case 't':
    case 'T':
      return number * 1e12;
    default:
      return std::nullopt;
  }
}

std::optional<Model> generic_decoder(std::string_view size, const BuildOptions& options,
                                     const std::string& file, const std::string& key) {
  const std::optional<double> wanted = parse_model_size(size);
  if (!wanted) return std::nullopt;
  if (*wanted < kSmallest || *wanted > kLargest)
    throw InputError({.file = file,
                      .key = key,
                      .message = fmt::format("a generic decoder of {} parameters", size),
                      .expected = "a size from 10M to 10T"});
  const Shape s = choose(*wanted);
  const std::int64_t heads = s.hidden / kHeadDim;
  const auto number = [](std::int64_t n) { return ConfigValue(ConfigScalar(n)); };
  const ModelConfig config(file, {{"model_type", ConfigValue(ConfigScalar(std::string("llama")))},
                                  {"hidden_size", number(s.hidden)},
                                  {"intermediate_size", number(s.ffn)},
                                  {"num_hidden_layers", number(s.layers)},
                                  {"num_attention_heads", number(heads)},
                                  {"num_key_value_heads", number(heads)},
                                  {"vocab_size", number(kVocabulary)}});
  Model model = build_llama(config, options);
  model.facts.name = std::string(size);
  model.facts.model_type = "llama";
  const double off = 100 * (s.parameters / *wanted - 1);
  for (std::string& line : std::vector<std::string>{
           fmt::format(
               "{}: a generic decoder in the shape of Llama, {:+.1f} % off the size asked for",
               size, off),
           fmt::format("layers {}, hidden size {}: the most usual proportions within 2 %", s.layers,
                       s.hidden),
           fmt::format("{} heads of {}, as many key and value heads", heads, kHeadDim),
           fmt::format("FFN {}: 8/3 of the hidden size to a multiple of 256", s.ffn),
           fmt::format("vocabulary {}, head not tied", kVocabulary)})
    model.facts.assumed.push_back(std::move(line));
  return model;
}

}  // namespace shardplan
