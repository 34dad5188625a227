// Without liburing.
#include "storage/mover_kinds.h"

namespace shardplan::validator {

std::unique_ptr<Mover> make_uring(const MoverParts&, std::string& why) {
  why = "built without liburing";
  return nullptr;
}

}  // namespace shardplan::validator
