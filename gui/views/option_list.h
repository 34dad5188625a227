// All options of a job in one table: filtered by words, edited in place.
#pragma once

#include <QLabel>
#include <QLineEdit>
#include <QTableView>
#include <QWidget>

#include "models/option_rows.h"

namespace shardplan::gui {

class OptionList : public QWidget {
  Q_OBJECT

 public:
  OptionList(Session& session, QWidget* parent);
  void refresh();

 private:
  void show_chosen();

  OptionsModel* model_;
  QLineEdit* filter_;
  QTableView* table_;
  QLabel* about_;  ///< the chosen option: what it is and what it can be
};

}  // namespace shardplan::gui
