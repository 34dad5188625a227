#include "views/accessible.h"

#include <QAccessible>
#include <QAccessibleWidget>
#include <optional>

#include "views/legend.h"
#include "views/meter_bar.h"
#include "views/plot_view.h"
#include "views/share_bar.h"
#include "views/text_label.h"
#include "views/timeline_view.h"

namespace shardplan::gui {
namespace {

std::optional<QAccessible::Role> role_of(const QObject* object) {
  if (qobject_cast<const TextLabel*>(object) || qobject_cast<const Legend*>(object))
    return QAccessible::StaticText;
  if (qobject_cast<const ShareBar*>(object) || qobject_cast<const TimelineView*>(object) ||
      qobject_cast<const PlotView*>(object))
    return QAccessible::Chart;
  if (qobject_cast<const MeterBar*>(object)) return QAccessible::Graphic;
  return std::nullopt;
}

QAccessibleInterface* accessible_view(const QString&, QObject* object) {
  const auto role = role_of(object);
  return role ? new QAccessibleWidget(static_cast<QWidget*>(object), *role) : nullptr;
}

}  // namespace

void make_views_accessible() {
  QAccessible::installFactory(accessible_view);
}

}  // namespace shardplan::gui
