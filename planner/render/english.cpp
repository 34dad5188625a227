#include "render/english.h"

#include "report/messages.h"

namespace shardplan {
namespace {

/// Read once, when the first words are asked for.
const report::Messages& english_messages() {
  static const report::Messages messages("en");
  return messages;
}

}  // namespace

std::string english(const report::Text& text) {
  return english_messages().text(text);
}

std::string english(const report::Cell& cell) {
  return english_messages().cell(cell);
}

}  // namespace shardplan
