// Work on several threads, with an answer that does not depend on how many there are.
#pragma once

#include <cstddef>
#include <functional>

namespace shardplan {

/// Calls work(i) for every i below `count`, each once, on at most `threads` threads (0: as many as
/// the machine has). Calls share nothing, but read the caller's given
/// texts (json/given_texts.h) as files; the first exception, by index, is thrown again here.
void for_each_index(std::size_t count, unsigned threads,
                    const std::function<void(std::size_t)>& work);

}  // namespace shardplan
