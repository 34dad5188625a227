#include <fmt/format.h>

#include <set>

#include "model/architectures/plain.h"
#include "model/config.h"

namespace shardplan {

Model tensor_list(const std::vector<NamedTensor>& tensors, const BuildOptions& options,
                  const std::string& file, const std::string& key) {
  const auto fail = [&](std::size_t i, std::string message, std::string expected) {
    throw InputError({.file = file,
                      .key = fmt::format("{}[{}]", key, i),
                      .message = std::move(message),
                      .expected = std::move(expected)});
  };
  if (tensors.empty())
    throw InputError({.file = file,
                      .key = key,
                      .message = "the list of tensors is empty",
                      .expected = "at least one [name, [dims]]"});
  ModelBuilder m(options);
  m.facts().model_type = "tensors";
  m.facts().assumed.push_back("no activations, logits or time: a list of tensors has no graph");
  std::set<std::string> names;
  std::int64_t total = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const NamedTensor& t = tensors[i];
    if (t.name.empty()) fail(i, "a tensor without a name", "[name, [dims]]");
    if (!names.insert(t.name).second)
      fail(i, fmt::format("'{}' appears twice", t.name), "a name for each tensor");
    std::int64_t numel = 1;
    for (const std::int64_t dim : t.shape) {
      if (dim < 1 || dim > kLargestDimension)
        fail(i, fmt::format("dimension {} of '{}'", dim, t.name),
             fmt::format("an integer from 1 to {}", kLargestDimension));
      // A byte count of any state (at most 8 bytes an element, a few states) must fit as well.
      if (__builtin_mul_overflow(numel, dim, &numel) || numel > (std::int64_t{1} << 56))
        fail(i, fmt::format("'{}' is too large", t.name), "at most 2^56 elements");
    }
    total += numel;
    if (total > (std::int64_t{1} << 56))
      fail(i, "the tensors together are too large", "at most 2^56 elements");
    m.tensor(t.name, t.shape, t.shape.size() > 1 ? ParameterKind::linear : ParameterKind::other);
  }
  return m.build();
}

}  // namespace shardplan
