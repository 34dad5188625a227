// The message of the InputError that a call throws, or "no error".
#pragma once

#include <string>

#include "base/diagnostic.h"

namespace shardplan {

template <typename F>
std::string error_text(F&& call) {
  try {
    call();
  } catch (const InputError& e) {
    return e.what();
  }
  return "no error";
}

}  // namespace shardplan
