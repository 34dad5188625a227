#include "data/batches.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "base/diagnostic.h"
#include "device/random.h"
#include "embedded/files.h"

namespace shardplan::validator {
namespace {

constexpr std::string_view kBuiltIn = "text/genesis.txt";

std::string read_bytes(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error))
    throw InputError({.file = path,
                      .key = "run.data",
                      .message = "is a folder",
                      .expected = "a file of tokens or text"});
  std::ifstream in(path, std::ios::binary);
  if (!in) throw InputError({.file = path, .key = "run.data", .message = "cannot be read"});
  return {std::istreambuf_iterator<char>(in), {}};
}

template <typename T>
std::vector<std::int32_t> widened(const std::string& bytes, const std::string& path) {
  if (bytes.size() % sizeof(T) != 0)
    throw InputError({.file = path,
                      .key = "run.data",
                      .message = fmt::format("{} bytes are no whole number of {}-byte tokens",
                                             bytes.size(), sizeof(T))});
  std::vector<std::int32_t> tokens(bytes.size() / sizeof(T));
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    T token;
    std::memcpy(&token, bytes.data() + i * sizeof(T), sizeof(T));
    // What no vocabulary reaches is caught with it.
    tokens[i] = static_cast<std::int32_t>(std::min<std::uint64_t>(token, 0x7FFFFFFF));
  }
  return tokens;
}

class TokenBatches final : public BatchSource {
 public:
  TokenBatches(Tokens tokens, const Division& division)
      : tokens_(std::move(tokens)), division_(division) {}

  Batch next(std::int64_t step, std::int64_t micro) override {
    const std::int64_t length = division_.sequence;
    const std::int64_t windows = (static_cast<std::int64_t>(tokens_->size()) - 1) / length;
    Batch batch;
    for (std::int64_t b = 0; b < division_.micro_batch; ++b) {
      const std::int64_t window = (division_.first_sample(step, micro) + b) % windows;
      const auto start = tokens_->begin() + window * length;
      batch.tokens.insert(batch.tokens.end(), start, start + length);
      batch.targets.insert(batch.targets.end(), start + 1, start + length + 1);
    }
    return rows_of(batch, length, division_.share);
  }

 private:
  Tokens tokens_;
  Division division_;
};

class ClassBatches final : public BatchSource {
 public:
  ClassBatches(MlpSpec spec, const Division& division, std::uint32_t seed)
      : spec_(std::move(spec)), division_(division), seed_(seed) {}

  Batch next(std::int64_t step, std::int64_t micro) override {
    Batch batch;
    for (std::int64_t b = 0; b < division_.micro_batch; ++b)
      add(batch, static_cast<std::uint64_t>(division_.first_sample(step, micro) + b));
    return batch;
  }

 private:
  float uniform(std::uint64_t stream, std::uint64_t index) const {
    return unit_interval(static_cast<std::uint32_t>(random_bits(seed_, stream, index))) - 0.5F;
  }
  void add(Batch& batch, std::uint64_t sample) const {
    const auto classes = static_cast<std::uint64_t>(spec_.widths.back());
    const std::uint64_t label = mixed(sample) % classes;
    batch.targets.push_back(static_cast<std::int32_t>(label));
    for (std::int64_t i = 0; i < spec_.widths.front(); ++i) {
      const auto at = static_cast<std::uint64_t>(i);
      batch.inputs.push_back(2 * uniform(label, at) + uniform(classes + sample, at));
    }
  }

  MlpSpec spec_;
  Division division_;
  std::uint32_t seed_;
};

}  // namespace

Tokens load_tokens(const std::string& path, std::int64_t vocabulary, std::int64_t sequence) {
  const std::string name = path.empty() ? "data/" + std::string(kBuiltIn) : path;
  const std::string bytes = path.empty() ? std::string(embedded_file(kBuiltIn)) : read_bytes(path);
  const std::string extension = std::filesystem::path(name).extension().string();
  std::vector<std::int32_t> tokens;
  if (extension == ".bin" || extension == ".u16") {
    tokens = widened<std::uint16_t>(bytes, name);
  } else if (extension == ".u32") {
    tokens = widened<std::uint32_t>(bytes, name);
  } else {
    tokens = widened<std::uint8_t>(bytes, name);
  }
  if (static_cast<std::int64_t>(tokens.size()) <= sequence)
    throw InputError(
        {.file = name,
         .key = "run.data",
         .message = fmt::format("{} tokens are too few", tokens.size()),
         .expected = fmt::format("at least {}, a sequence and its last target", sequence + 1)});
  const auto beyond =
      std::find_if(tokens.begin(), tokens.end(), [&](std::int32_t t) { return t >= vocabulary; });
  if (beyond != tokens.end())
    throw InputError(
        {.file = name,
         .key = "run.data",
         .message = fmt::format("token {} at position {}", *beyond, beyond - tokens.begin()),
         .expected = fmt::format("tokens below the vocabulary's {}", vocabulary)});
  return std::make_shared<const std::vector<std::int32_t>>(std::move(tokens));
}

Batch rows_of(const Batch& whole, std::int64_t sequence, const ContextShare& share) {
  const RowPlaces places = share.places(sequence);
  Batch part;
  for (std::int64_t begin = 0; begin < std::ssize(whole.tokens); begin += sequence)
    for (std::int64_t row = 0; row < places.sequence; ++row) {
      const auto at = static_cast<std::size_t>(begin + places.of(row));
      part.tokens.push_back(whole.tokens[at]);
      part.targets.push_back(whole.targets[at]);
    }
  return part;
}

std::unique_ptr<BatchSource> token_batches(Tokens tokens, const Division& division) {
  return std::make_unique<TokenBatches>(std::move(tokens), division);
}

std::unique_ptr<BatchSource> class_batches(const MlpSpec& spec, const Division& division,
                                           std::uint32_t seed) {
  return std::make_unique<ClassBatches>(spec, division, seed);
}

}  // namespace shardplan::validator
