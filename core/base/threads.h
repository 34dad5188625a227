// Work on several threads, with an answer that does not depend on how many there are.
#pragma once

#include <cstddef>
#include <functional>

namespace shardplan {

/// Calls work(i) for every i below `count`, each once, on at most `threads` threads (0: as many as
/// the machine has). The first exception, by index, is thrown again here.
void on_threads(std::size_t count, unsigned threads, const std::function<void(std::size_t)>& work);

}  // namespace shardplan
