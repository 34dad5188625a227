// The report's colours in the window, dark or light as the window is. People with any colour vision
// tell them apart; what is not tensors is hatched.
#pragma once

#include <QBrush>
#include <QColor>
#include <QPalette>

#include "estimate/estimate.h"

namespace shardplan::gui {

/// By Category: those that are plain colours differ by CIE 1976 ΔE of 16 at least, to any eye.
QBrush category_brush(int category);
/// By Share::colour of a time bar.
QBrush time_brush(int activity);
/// Of the band between an estimate and its upper bound.
QBrush upper_bound_brush(const QPalette& palette);
/// Black or white, whichever stands out more: 4.5:1 at least (WCAG 2).
QColor ink_on(const QColor& ground);
/// Readable on the window's ground, dark or light.
QColor verdict_colour(Fit fit, const QPalette& palette);
/// Of a plot's grid: seen, and not in the way.
QColor grid_colour(const QPalette& palette);
/// Of the n-th kind of points of a plot; after the last one they begin again.
QColor series_colour(int series);
/// Of the point that is chosen.
QColor chosen_colour();
/// "✓", "≈", "✗", "?": the verdict without colour.
QString verdict_sign(Fit fit);

enum class Theme { system, light, dark };
QPalette light_palette();
QPalette dark_palette();
bool is_dark(const QPalette& palette);

}  // namespace shardplan::gui
