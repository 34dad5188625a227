// What screen readers take the window's own widgets for.
#pragma once

namespace shardplan::gui {

/// Words are read as text, bars and plots as charts. Call it before the first window is made.
void make_views_accessible();

}  // namespace shardplan::gui
