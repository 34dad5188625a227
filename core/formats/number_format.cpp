#include "formats/number_format.h"

#include <algorithm>
#include <numeric>

#include "base/checked.h"

namespace shardplan {
namespace {

std::int64_t packed_bytes(std::int64_t values, int bits) {
  return ceil_div(checked_mul(values, bits), 8);
}

/// How many spans of `length` cover `whole`; a length of 0 is all of it.
std::int64_t spans(std::int64_t whole, std::int64_t length) {
  return length == 0 ? 1 : ceil_div(whole, length);
}

/// `before`: the values of the part before.
std::int64_t values_of(const FormatPart& part, std::int64_t numel, std::int64_t rows,
                       std::int64_t before) {
  switch (part.sharing) {
    case Sharing::run:
      return spans(numel, part.columns);
    case Sharing::tile:
      return checked_mul(spans(rows, part.rows), spans(numel / rows, part.columns));
    case Sharing::values:
      return spans(before, part.columns);
  }
  return 0;
}

}  // namespace

std::vector<std::int64_t> bytes_of_parts(const NumberFormat& format, std::int64_t numel,
                                         std::int64_t rows) {
  std::vector<std::int64_t> bytes{packed_bytes(numel, format.bits)};
  std::int64_t values = numel;
  for (const FormatPart& part : format.parts) {
    if (part.what.empty()) break;
    values = values_of(part, numel, rows, values);
    bytes.push_back(packed_bytes(values, part.bits));
  }
  return bytes;
}

std::int64_t bytes_in(const NumberFormat& format, std::int64_t numel, std::int64_t rows) {
  const std::vector<std::int64_t> parts = bytes_of_parts(format, numel, rows);
  return std::accumulate(parts.begin(), parts.end(), std::int64_t{0});
}

std::string alternatives(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i)
    text += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + names[i];
  return text;
}

}  // namespace shardplan
