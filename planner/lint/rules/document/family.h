// The file as a text.
#pragma once

#include <span>
#include <vector>

#include "lint/subject.h"

namespace shardplan::lint_rules::document {

// The parser of json/document.h throws the others, with a message of its own.

// The rules, one file each.
Rule syntax();
TextRule comments();
Rule duplicate_key();
TextRule repeated_key();
Rule too_deep();

// In the order in which they are checked, and listed.
std::span<const TextRule> of_text();
std::vector<Rule> listed();  // every one of the family

}  // namespace shardplan::lint_rules::document
