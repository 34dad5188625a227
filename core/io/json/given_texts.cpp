#include "json/given_texts.h"

#include <filesystem>
#include <string_view>
#include <utility>

namespace shardplan {
namespace {

/// Readers are many and deep below the caller; each would have to hand the texts on.
const TextsByName*& of_this_thread() {
  thread_local const TextsByName* texts = nullptr;
  return texts;
}

}  // namespace

GivenTexts::GivenTexts(TextsByName texts)
    : texts_(std::move(texts)), outer_(std::exchange(of_this_thread(), &texts_)) {}

GivenTexts::GivenTexts(const TextsByName* of_employer)
    : outer_(std::exchange(of_this_thread(), of_employer)) {}

const TextsByName* GivenTexts::current() {
  return of_this_thread();
}

GivenTexts::~GivenTexts() {
  of_this_thread() = outer_;
}

const std::string* given_text(const std::string& path) {
  if (of_this_thread() == nullptr) return nullptr;
  const auto found = of_this_thread()->find(std::string_view(path).substr(path.rfind('/') + 1));
  return found == of_this_thread()->end() ? nullptr : &found->second;
}

bool is_readable(const std::string& path) {
  std::error_code error;
  return given_text(path) != nullptr || std::filesystem::is_regular_file(path, error);
}

}  // namespace shardplan
