#include "import/unset_arguments.h"

#include <fmt/format.h>

#include "base/diagnostic.h"
#include "job/fields.h"

namespace shardplan::importing {

void refuse_unset(const Recipe& recipe, const Json& flags) {
  for (const auto& [pointer, where] : recipe.unset) {
    if (field_of(flags, pointer) || recipe.origins.contains(pointer)) continue;
    std::string flag;
    for (const JobField& field : job_fields())
      if (field.pointer == pointer) flag = std::string(field.flag);
    throw InputError({.file = where.file,
                      .key = where.key,
                      .message = "its value is a variable that the script does not set",
                      .expected = flag,
                      .position = {where.line, where.line > 0 ? 1 : 0}});
  }
}

}  // namespace shardplan::importing
