// Where each key of a JSON text stands: what editors and code hosts mark.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/diagnostic.h"

namespace shardplan {

/// The places of keys and array elements, by the path that diagnostics use: "fp16.enabled",
/// "tensors[3][1]". Of a key that appears twice, the first counts.
class KeyPositions {
 public:
  void add(std::string path, TextPosition position);

  /// The place of `path`, or of the innermost block around it that is there; the start of the text
  /// when there is none.
  TextPosition find(std::string_view path) const;

  /// Whether no place is known, as of a text that stood within another one.
  bool empty() const { return places_.empty(); }

  /// The second place of the first key that appears twice.
  TextPosition repeated() const { return repeated_; }

 private:
  std::map<std::string, TextPosition, std::less<>> places_;
  TextPosition repeated_;
};

/// Looks through `text`, comments included. A text that is no JSON gives the places up to where it
/// ceases to be.
KeyPositions find_positions(std::string_view text);

}  // namespace shardplan
