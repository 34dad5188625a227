#include "questions/workers.h"

#include "base/threads.h"
#include "json/given_texts.h"

namespace shardplan {

void for_each_index(std::size_t count, unsigned threads,
                    const std::function<void(std::size_t)>& work) {
  const TextsByName* texts = GivenTexts::current();
  on_threads(count, threads, [&](std::size_t i) {
    const GivenTexts given(texts);
    work(i);
  });
}

}  // namespace shardplan
