// Where the lines of a text may break.
#pragma once

#include <QString>

namespace shardplan::gui {

/// `text` as it is laid out: lines break where it says and between words, but not between a number
/// and its unit ("0 B", "40 %"). As long as `text`, so that places in one are places in the other.
QString with_line_breaks(QString text);

}  // namespace shardplan::gui
