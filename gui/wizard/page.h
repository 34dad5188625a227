// A page of the window: shows the session, and changes its job.
#pragma once

#include <QEvent>
#include <QLineEdit>
#include <QWidget>
#include <functional>
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
  /// Begins what a picture of the page shows at work: a search, a run.
  virtual void show_example() {}

 Q_SIGNALS:
  /// The page has what it needs: Return was pressed in its first field.
  void done();
  /// What was done, or could not be, for the line above the buttons.
  void told(const QString& what);
  void told_problem(const QString& what);

 protected:
  /// Brings the widgets up to the session's answer. Called when it changes while the page is seen,
  /// and when the page comes up.
  virtual void refresh() = 0;
  Session& session() { return session_; }
  const Answer& answer() const { return session_.answer(); }
  const Workbench& workbench() const { return session_.workbench(); }
  const Calibration& calibration() const { return workbench().calibration; }
  /// A new job does; so does one with several models, of which some train.
  bool trains() const {
    return !answer().job || answer().job->plan.workload.kind != WorkKind::inference;
  }
  const JobDocument& document() const { return std::as_const(session_).document(); }

  /// A field whose text is the job's at every key: `write` is called with it. What is typed without
  /// leaving the field is one step to undo, and the field keeps none of its own.
  void write_while_typed(QLineEdit* edit, std::function<void(const QString&)> write) {
    connect(edit, &QLineEdit::textEdited, this,
            [this, edit, write = std::move(write)](const QString& typed) {
              session_.document().begin_gesture();
              edit->setModified(false);
              write(typed.trimmed());
            });
    connect(edit, &QLineEdit::editingFinished, this, [this] { session_.document().end_gesture(); });
  }

  void showEvent(QShowEvent* event) override {
    QWidget::showEvent(event);
    refresh();
  }
  /// Words are written in colours of the theme, once all that is on the page has them.
  void changeEvent(QEvent* event) override {
    QWidget::changeEvent(event);
    if (event->type() == QEvent::PaletteChange)
      QMetaObject::invokeMethod(
          this, [this] { refresh_if_shown(); }, Qt::QueuedConnection);
  }

 private:
  void refresh_if_shown() {
    if (isVisible()) refresh();
  }

  Session& session_;
  QString title_;
};

}  // namespace shardplan::gui
