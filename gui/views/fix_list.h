// What would make more room: each change with its price, and a button that applies it.
#pragma once

#include <QPushButton>
#include <QWidget>
#include <vector>

#include "models/session.h"

class QVBoxLayout;

namespace shardplan::gui {

class FixList : public QWidget {
  Q_OBJECT

 public:
  explicit FixList(Session& session, QWidget* parent = nullptr);
  void refresh();

 private:
  QWidget* make_remark();
  QWidget* make_row(const Fix& fix);

  Session& session_;
  QVBoxLayout* rows_;
};

}  // namespace shardplan::gui
