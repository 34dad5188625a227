// Between core's UTF-8 and Qt's strings.
#pragma once

#include <QString>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/format.h"

namespace shardplan::gui {

inline QString text(std::string_view utf8) {
  return QString::fromUtf8(utf8.data(), static_cast<qsizetype>(utf8.size()));
}

inline QString bytes_text(std::int64_t count) {
  return text(format_bytes(count));
}

}  // namespace shardplan::gui
