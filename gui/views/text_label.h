// Words that change while a slider moves. A QLabel that can be copied from keeps a document, breaks
// its lines anew whenever a layout asks, and makes the window lay itself out for every new word;
// this shapes a text once, and asks for room only when it needs another line or was never as wide.
#pragma once

#include <QTextLayout>
#include <QWidget>
#include <utility>
#include <vector>

namespace shardplan::gui {

class TextLabel : public QWidget {
  Q_OBJECT

 public:
  enum class Lines : std::uint8_t { one, wrapped };

  explicit TextLabel(Lines lines, QWidget* parent = nullptr);

  const QString& text() const { return text_; }
  /// `formats`: of parts of the text; '\n' begins a line.
  void set_text(const QString& text, const QList<QTextLayout::FormatRange>& formats = {});
  void set_alignment(Qt::Alignment alignment);
  /// Part of the text does not fit into the widget.
  bool is_cut() const;

  QSize sizeHint() const override;
  QSize minimumSizeHint() const override;
  int heightForWidth(int width) const override;

 protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void changeEvent(QEvent* event) override;
  void contextMenuEvent(QContextMenuEvent* event) override;

 private:
  void break_lines(int width) const;
  void shape();

  const Lines lines_;
  QString text_;
  mutable QTextLayout layout_;  ///< as it is painted, but while a height is asked for
  Qt::Alignment alignment_ = Qt::AlignLeft;
  int natural_width_ = 0;  ///< of the longest line
  int widest_ = 0;         ///< that it was: one line keeps its room, so that a row stays still
  mutable std::vector<std::pair<int, int>> heights_;  ///< of this text: width, height
};

}  // namespace shardplan::gui
