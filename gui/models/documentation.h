// Where the documentation is on this machine.
#pragma once

#include <QString>

namespace shardplan::gui {

/// The first page, of an installed package or of a checkout: as a site where it was built, else the
/// text. "" where neither is.
QString documentation();

}  // namespace shardplan::gui
