// Names beside points that do not cover each other.
#pragma once

#include <QPointF>
#include <QRectF>
#include <QSizeF>
#include <optional>
#include <vector>

namespace shardplan::gui {

struct LabelWish {
  QPointF anchor;  ///< of its point
  QSizeF size;
};

/// A place for each, in the order asked, beside its anchor: within `area`, over no other label, no
/// point of `points` (each `radius` around its middle) and nothing of `also_taken`. Nothing where
/// there is no room.
std::vector<std::optional<QRectF>> place_labels(const std::vector<LabelWish>& wishes,
                                                const QRectF& area,
                                                const std::vector<QPointF>& points, double radius,
                                                const std::vector<QRectF>& also_taken = {});

}  // namespace shardplan::gui
