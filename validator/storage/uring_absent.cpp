// Without liburing.
#include "storage/movers.h"

namespace shardplan::validator {

std::unique_ptr<Mover> make_uring(ChunkQueue&, int, int, std::string& why) {
  why = "built without liburing";
  return nullptr;
}

}  // namespace shardplan::validator
