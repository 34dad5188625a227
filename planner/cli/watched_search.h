// A search that somebody waits for.
#pragma once

#include "render/search_text.h"

namespace shardplan::cli {

/// `search`, with a line on the terminal that says how far it is; Ctrl-C ends it with the best so
/// far, a second one ends the program. `threads` 0: as many as the machine has.
SearchResult watched_search(const ModelVariants& models, const SearchSpace& space, const Goal& goal,
                            const Calibration& calibration, unsigned threads);

/// The networks that plans of `space` need: `asked` names the job's, and `file` where it stands.
ModelVariants variants_of(const Job& job, const Json& asked, const std::string& file,
                          const SearchSpace& space);

/// What `result` says, with the choices around its best plan. Refers to all but the last.
SearchAnswer answer_of(const Job& job, const ModelVariants& models, const SearchSpace& space,
                       const Goal& goal, const SearchResult& result,
                       const Calibration& calibration);

}  // namespace shardplan::cli
