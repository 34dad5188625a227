// Files that people have and no kind reads: told by name, so that nothing near them is guessed.
#pragma once

#include "import/document.h"

namespace shardplan::importing {

/// Throws InputError where `document` is a file of a trainer that no kind reads, or a job of
/// shardplan among other files.
void refuse_unread(const Document& document);

}  // namespace shardplan::importing
