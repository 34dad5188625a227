// Work on several threads that read files.
#pragma once

#include <cstddef>
#include <functional>

namespace shardplan {

/// on_threads(), whose calls read the caller's given texts (json/given_texts.h) as files.
void for_each_index(std::size_t count, unsigned threads,
                    const std::function<void(std::size_t)>& work);

}  // namespace shardplan
