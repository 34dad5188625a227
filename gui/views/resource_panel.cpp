#include "views/resource_panel.h"

#include <QGridLayout>

#include "views/colours.h"
#include "views/report_style.h"
#include "views/widgets.h"

namespace shardplan::gui {

ResourcePanel::ResourcePanel(QWidget* parent) : QWidget(parent), rows_{} {
  auto* layout = new QGridLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setVerticalSpacing(half_space());
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    Row& row = rows_[i];
    for (TextLabel** label : {&row.name, &row.verdict, &row.amount, &row.margin})
      *label = new TextLabel(TextLabel::Lines::one, this);
    row.bar = new MeterBar(this);
    int column = 0;
    for (QWidget* part :
         std::initializer_list<QWidget*>{row.name, row.verdict, row.amount, row.bar, row.margin})
      layout->addWidget(part, static_cast<int>(i), column++);
    constexpr std::array kNames{"gpu", "host", "nvme"};
    row.verdict->setObjectName(QStringLiteral("%1_verdict").arg(QLatin1String(kNames[i])));
    row.amount->setObjectName(QStringLiteral("%1_amount").arg(QLatin1String(kNames[i])));
    row.margin->setObjectName(QStringLiteral("%1_margin").arg(QLatin1String(kNames[i])));
  }
  layout->setColumnStretch(4, 1);
  layout->setHorizontalSpacing(2 * space());
}

void ResourcePanel::set_resources(const std::vector<ResourceLine>& lines) {
  for (std::size_t i = 0; i < std::min(rows_.size(), lines.size()); ++i) {
    const ResourceLine& line = lines[i];
    Row& row = rows_[i];
    row.name->set_text(line.name);
    row.verdict->set_text(line.is_used
                              ? QStringLiteral("%1 %2").arg(verdict_sign(line.fit), line.verdict)
                              : line.verdict);
    set_ink(row.verdict, line.is_used ? verdict_colour(line.fit, palette())
                                      : palette().color(QPalette::PlaceholderText));
    row.amount->set_text(line.amount);
    row.margin->set_text(line.margin);
    row.bar->set_amounts(line.needed, line.upper, line.available);
    row.bar->setVisible(line.is_used);
    row.bar->setAccessibleName(QStringLiteral("%1: %2").arg(line.name, line.amount));
    for (TextLabel* label : {row.name, row.verdict, row.amount, row.margin})
      set_hint(label, line.hint);
  }
}

}  // namespace shardplan::gui
