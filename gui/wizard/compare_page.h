// Up to four plans side by side: ZeRO stages 0 to 3 to begin with, others by choice.
#pragma once

#include <QLabel>
#include <QListWidget>
#include <array>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "models/plan_table.h"
#include "views/share_bar.h"
#include "wizard/page.h"

namespace shardplan::gui {

/// A job as it was when the person kept it; it is offered beside jobs of the same model.
struct KeptPlan {
  std::string model;
  Alternative plan;
};

class ComparePage : public Page {
  Q_OBJECT

 public:
  explicit ComparePage(Session& session, QWidget* parent = nullptr);

  const std::vector<KeptPlan>& kept() const { return kept_; }
  void keep(std::vector<KeptPlan> plans) { kept_ = std::move(plans); }

 protected:
  void refresh() override;

 private:
  std::vector<Alternative> alternatives(const Answer& a) const;
  void keep_current();
  std::string free_name(const Plan& plan) const;
  void list_choices(const std::optional<std::set<std::string>>& was_checked);
  void limit_choices(std::size_t chosen);
  void show_chosen();
  void show_legend();

  std::vector<Alternative> offered_;  ///< of the list, in its order
  std::vector<KeptPlan> kept_;
  PlanTable* model_;
  QListWidget* list_;
  struct Bar {
    QLabel* name;
    ShareBar* bar;
  };
  std::array<Bar, kMostCompared> bars_{};
  Legend* legend_;
};

}  // namespace shardplan::gui
