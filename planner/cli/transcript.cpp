#include "cli/transcript.h"

#include <utility>

namespace shardplan::cli {
namespace {

Transcript*& innermost() {
  thread_local Transcript* transcript = nullptr;
  return transcript;
}

}  // namespace

Transcript::Transcript() : outer_(std::exchange(innermost(), this)) {}

Transcript::~Transcript() {
  innermost() = outer_;
}

Transcript* Transcript::current() {
  return innermost();
}

}  // namespace shardplan::cli
