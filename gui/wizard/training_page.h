// How it is trained: method, batch, precision, framework; a ds_config with what is found in it.
#pragma once

#include <QGroupBox>
#include <QLabel>
#include <QPushButton>
#include <QTabWidget>

#include "views/field_form.h"
#include "views/lint_panel.h"
#include "views/option_list.h"
#include "wizard/page.h"

namespace shardplan::gui {

class TrainingPage : public Page {
  Q_OBJECT

 public:
  explicit TrainingPage(Session& session, QWidget* parent = nullptr);
  void take_focus() override;
  bool is_busy() const override { return lint_->is_busy(); }

 Q_SIGNALS:
  void open_asked();  ///< the person wants to choose a ds_config.json

 protected:
  void refresh() override;

 private:
  QLayout* make_config_side();

  QGroupBox* how_;
  QTabWidget* tabs_;
  FieldForm* form_;
  OptionList* options_;
  QLabel* error_;
  QLabel* file_;
  QPushButton* drop_;
  LintPanel* lint_;
};

}  // namespace shardplan::gui
