// One line about what has just happened: what was written, what could not be, what a file changed.
#pragma once

#include <QLabel>
#include <QPushButton>
#include <QWidget>
#include <cstdint>

namespace shardplan::gui {

struct Notice {
  enum class Kind : std::uint8_t { done, problem };
  Kind kind = Kind::done;
  QString text;
  QStringList details = {};  ///< behind a button
  bool can_undo = false;     ///< the last step of the job
};

class NoticeBar : public QWidget {
  Q_OBJECT

 public:
  explicit NoticeBar(QWidget* parent = nullptr);
  /// Seen until it is closed, or another takes its place; a notice without text: none.
  void show_notice(const Notice& notice);

 Q_SIGNALS:
  void undo_asked();

 protected:
  void changeEvent(QEvent* event) override;

 private:
  void show_details();
  void paint_sign();

  Notice notice_;
  QLabel *sign_, *text_;
  QPushButton *details_, *undo_;
};

}  // namespace shardplan::gui
