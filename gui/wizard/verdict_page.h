// Will it fit, what fills the GPU, how fast is it, and what would change that.
#pragma once

#include <QLabel>
#include <vector>

#include "models/estimate_models.h"
#include "views/choice_slider.h"
#include "views/fix_list.h"
#include "views/next_step.h"
#include "views/rank_bars.h"
#include "views/resource_panel.h"
#include "views/share_bar.h"
#include "views/text_label.h"
#include "views/timeline_view.h"
#include "wizard/page.h"

class QGroupBox;
class QTabWidget;

namespace shardplan::gui {

class VerdictPage : public Page {
  Q_OBJECT

 public:
  explicit VerdictPage(Session& session, QWidget* parent = nullptr);

 protected:
  void refresh() override;

 private:
  QLayout* make_heading();
  QWidget* make_memory();
  QWidget* make_time();
  QWidget* make_what_if();
  QTabWidget* make_tabs();
  void show_answer();
  void show_tab();

  QLabel* error_;
  QGroupBox *memory_box_, *time_box_;
  TextLabel *verdict_, *subject_, *method_, *largest_, *rates_;
  NextStep* next_step_;
  ResourcePanel* resources_;
  ShareBar *memory_, *time_;
  Legend *memory_legend_, *time_legend_;
  RankBars* ranks_;
  TimelineView* timeline_;
  RowsModel<Share>* breakdown_;
  RowsModel<Fact>*phases_, *traffic_, *foundation_;
  FixList* fixes_;
  QTabWidget* tabs_;
  std::vector<ChoiceSlider*> sliders_;
  QWidget* body_;
};

}  // namespace shardplan::gui
