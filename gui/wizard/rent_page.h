// The machine to rent: models and methods by dollars and days for so many tokens, with prices,
// their day and their source.
#pragma once

#include <QCheckBox>
#include <QLabel>
#include <QLineEdit>
#include <QProgressBar>
#include <QPushButton>
#include <QSpinBox>
#include <QTableView>

#include "models/rent_session.h"
#include "views/plot_view.h"
#include "views/text_label.h"
#include "wizard/page.h"

namespace shardplan::gui {

class RentPage : public Page {
  Q_OBJECT

 public:
  explicit RentPage(Session& session, QWidget* parent = nullptr);
  void take_focus() override;
  bool is_busy() const override { return rent_.is_running(); }
  void show_example() override { ask(); }
  const RentSession& rent() const { return rent_; }

 Q_SIGNALS:
  void job_chosen(const Json& job);  ///< that runs on the chosen machine

 protected:
  void refresh() override;

 private:
  QLayout* make_question();
  QLayout* make_actions();
  void ask();
  void show_result();
  void select(int row);
  int selected_row() const;

  RentSession rent_;
  QLineEdit *models_, *tokens_;
  QLabel* error_;
  QCheckBox *full_, *lora_, *qlora_;
  QSpinBox *length_, *nodes_;
  QPushButton *find_, *use_;
  QProgressBar* progress_;
  TextLabel *summary_, *source_;
  PlotView* plot_;
  QTableView* table_;
  std::vector<int> rows_of_points_;
  bool is_filled_ = false;  ///< the model's field: by the job's, as long as nobody types
};

}  // namespace shardplan::gui
