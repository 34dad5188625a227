#include "views/notice_bar.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QMessageBox>

#include "views/colours.h"
#include "views/widgets.h"

namespace shardplan::gui {

NoticeBar::NoticeBar(QWidget* parent) : QWidget(parent) {
  sign_ = new QLabel(this);
  text_ = make_text(this);
  text_->setTextFormat(Qt::PlainText);
  text_->setObjectName(QStringLiteral("message"));
  const auto add_button = [this](const QString& words, const char* name, auto action) {
    auto* button = new QPushButton(words, this);
    button->setObjectName(QLatin1String(name));
    connect(button, &QPushButton::clicked, this, action);
    return button;
  };
  details_ = add_button(tr("What &changed…"), "notice_details", &NoticeBar::show_details);
  undo_ = add_button(tr("&Undo this"), "notice_undo", &NoticeBar::undo_asked);
  auto* close = add_button(tr("Dismiss"), "notice_close", [this] { show_notice({}); });
  auto* layout = new QHBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(sign_);
  layout->addWidget(text_, 1);
  for (QPushButton* button : {details_, undo_, close}) layout->addWidget(button);
  hide();
}

void NoticeBar::show_notice(const Notice& notice) {
  notice_ = notice;
  text_->setText(notice.text);
  details_->setVisible(!notice.details.isEmpty());
  undo_->setVisible(notice.can_undo);
  paint_sign();
  setVisible(!notice.text.isEmpty());
}

void NoticeBar::paint_sign() {
  const bool is_done = notice_.kind == Notice::Kind::done;
  sign_->setText(is_done ? QStringLiteral("✓") : QStringLiteral("⚠"));
  sign_->setAccessibleName(is_done ? tr("Done") : tr("Problem"));
  set_ink(sign_, is_done ? verdict_colour(Fit::fits, palette())
                         : verdict_colour(Fit::does_not_fit, palette()));
}

void NoticeBar::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange) paint_sign();
}

void NoticeBar::show_details() {
  QMessageBox::information(
      window(), tr("What changed"),
      notice_.text + QStringLiteral("\n\n") + notice_.details.join(QLatin1Char('\n')));
}

}  // namespace shardplan::gui
