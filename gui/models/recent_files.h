// The job files that were opened or saved last.
#pragma once

#include <QStringList>

namespace shardplan::gui {

/// Newest first; files that are gone are left out.
QStringList recent_files();
void remember_file(const QString& path);

}  // namespace shardplan::gui
