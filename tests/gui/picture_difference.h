// Whether two pictures of a window look the same to a person.
#pragma once

#include <QImage>

namespace shardplan::gui {

/// How stored pictures are smaller than the window, in each direction.
inline constexpr int kReducedBy = 3;

/// A picture as it is stored: reduced, with five bits a channel, which makes its file small.
QImage reduced(const QImage& picture);

struct PictureDifference {
  int differing = 0;  ///< pixels, of reduced pictures
  QImage map;         ///< the expected picture, pale, with those pixels in red
  /// Fewer than a letter's worth are noise.
  bool is_seen() const { return differing >= 12; }
};

/// Compares reduced pictures. Brightness and both chroma of YIQ, weighted as people see them
/// (Kotsarenko and Ramos, "Measuring perceived color difference using YIQ", 2010), are averaged
/// over 9 × 3 pixels first: the edges of letters, which differ between versions of font libraries,
/// and a single other digit are then next to nothing, and a word that is gone is not. Pictures of
/// another size differ everywhere.
PictureDifference difference_of(const QImage& expected, const QImage& actual);

}  // namespace shardplan::gui
