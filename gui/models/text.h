// Between core's UTF-8 and Qt's strings.
#pragma once

#include <QString>
#include <string>
#include <string_view>

namespace shardplan::gui {

inline QString text(std::string_view utf8) {
  return QString::fromUtf8(utf8.data(), static_cast<qsizetype>(utf8.size()));
}

}  // namespace shardplan::gui
