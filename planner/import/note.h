// What an import did with each key of a file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shardplan::importing {

struct Note {
  enum class Kind : std::uint8_t {
    took,     ///< it is in the job as `field`
    ignored,  ///< it changes neither memory nor time: `reason`
    warning,  ///< it changes them, and the estimate does not count it: `reason`
    unknown,  ///< no table has it
    assumed,  ///< nothing said it: `field` follows from what the trainer does
  };
  Kind kind = Kind::took;
  std::string file;
  int line = 0;  ///< 0: not known
  std::string key;
  std::string field;
  std::string reason;
};

/// Every note in a line of its own, as `shardplan import` shows them.
std::string all_notes(const std::vector<Note>& notes);

/// What was taken, ignored and not counted, in a few lines: what other commands show.
std::string short_notes(const std::vector<Note>& notes);

}  // namespace shardplan::importing
