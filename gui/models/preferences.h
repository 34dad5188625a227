// What the windows remember from one run to the next, in the settings of the person who uses them.
#pragma once

#include <QVariant>
#include <cstdint>

#include "models/job_document.h"

namespace shardplan::gui {

enum class Preference : std::uint8_t {
  language,      ///< "ja"; none: the system's
  theme,         ///< a Theme's number; none: the system's
  geometry,      ///< of the window, as QWidget::saveGeometry has it
  page,          ///< a page's name
  folder,        ///< of the file that was last opened or saved
  searched_job,  ///< the text of the job that the last search was about; none: none was, or it is
                 ///< gone
  objective,     ///< of that search
};

/// Invalid where it was never set.
QVariant preference(Preference what);
void set_preference(Preference what, const QVariant& value);

/// Keeps the job as it is, saved or not, and the name of its file.
void keep_draft(const JobDocument& document);
/// Brings back the job that was kept last; false where none was.
bool resume_draft(JobDocument& document);

}  // namespace shardplan::gui
