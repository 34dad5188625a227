// A page of the window: shows the session, and changes its job.
#pragma once

#include <QWidget>
#include <utility>

#include "models/session.h"

namespace shardplan::gui {

class Page : public QWidget {
  Q_OBJECT

 public:
  Page(Session& session, QString title, QWidget* parent)
      : QWidget(parent), session_(session), title_(std::move(title)) {
    connect(&session, &Session::answered, this, [this] { refresh_if_shown(); });
  }

  const QString& title() const { return title_; }
  /// The window is as high as it is: it need not ask how high its pages would like to be, hidden
  /// ones too, whenever a word changes.
  bool hasHeightForWidth() const override { return false; }
  /// Gives the keyboard to what a person fills in first.
  virtual void take_focus() {}
  /// Something that it shows is still on its way from the background.
  virtual bool is_busy() const { return false; }

 Q_SIGNALS:
  /// The page has what it needs: Return was pressed in its first field.
  void done();

 protected:
  /// Brings the widgets up to the session's answer. Called when it changes while the page is seen,
  /// and when the page comes up.
  virtual void refresh() = 0;
  Session& session() { return session_; }
  const Answer& answer() const { return session_.answer(); }
  const Workbench& workbench() const { return session_.workbench(); }
  const Calibration& calibration() const { return workbench().calibration; }
  const JobDocument& document() const { return std::as_const(session_).document(); }

  void showEvent(QShowEvent* event) override {
    QWidget::showEvent(event);
    refresh();
  }

 private:
  void refresh_if_shown() {
    if (isVisible()) refresh();
  }

  Session& session_;
  QString title_;
};

}  // namespace shardplan::gui
