#include "models/plot/labels.h"

#include <algorithm>
#include <array>

namespace shardplan::gui {
namespace {

/// Where a label may be: which part of it touches the anchor, as shares of its size.
struct Side {
  double x, y;
};
constexpr std::array<Side, 8> kSides{{{1, -1},   // above, to the right
                                      {1, 0},    // right
                                      {1, 1},    // below, to the right
                                      {-1, -1},  // above, to the left
                                      {-1, 0},   // left
                                      {-1, 1},   // below, to the left
                                      {0, -1},   // above
                                      {0, 1}}};  // below

QRectF beside(const LabelWish& wish, const Side& side, double gap) {
  const QPointF centre =
      wish.anchor + QPointF(side.x * (wish.size.width() / 2 + gap),
                            side.y * (wish.size.height() / 2 + (side.x == 0 ? gap : gap / 3)));
  return {centre - QPointF(wish.size.width() / 2, wish.size.height() / 2), wish.size};
}

}  // namespace

std::vector<std::optional<QRectF>> place_labels(const std::vector<LabelWish>& wishes,
                                                const QRectF& area,
                                                const std::vector<QPointF>& points, double radius,
                                                const std::vector<QRectF>& also_taken) {
  std::vector<QRectF> taken = also_taken;
  for (const QPointF& p : points)
    taken.emplace_back(p - QPointF(radius, radius), QSizeF(2 * radius, 2 * radius));
  std::vector<std::optional<QRectF>> places;
  for (const LabelWish& wish : wishes) {
    std::optional<QRectF> place;
    for (const Side& side : kSides) {
      const QRectF at = beside(wish, side, radius + 3);
      const bool free = area.contains(at) &&
                        std::none_of(taken.begin(), taken.end(),
                                     [&](const QRectF& other) { return other.intersects(at); });
      if (!free) continue;
      place = at;
      taken.push_back(at);
      break;
    }
    places.push_back(place);
  }
  return places;
}

}  // namespace shardplan::gui
