// Up to four plans side by side: ZeRO stages 0 to 3 to begin with, others by choice.
#pragma once

#include <QLabel>
#include <QListWidget>
#include <array>
#include <vector>

#include "models/plan_table.h"
#include "views/share_bar.h"
#include "wizard/page.h"

namespace shardplan::gui {

class ComparePage : public Page {
  Q_OBJECT

 public:
  explicit ComparePage(Session& session, QWidget* parent = nullptr);

 protected:
  void refresh() override;

 private:
  std::vector<Alternative> alternatives(const Answer& a) const;
  void keep_current();
  void show_chosen();

  std::vector<Alternative> offered_;  ///< of the list, in its order
  std::vector<Alternative> kept_;     ///< jobs as they were when the person kept them
  PlanTable* model_;
  QListWidget* list_;
  struct Bar {
    QLabel* name;
    ShareBar* bar;
  };
  std::array<Bar, kMostCompared> bars_{};
};

}  // namespace shardplan::gui
