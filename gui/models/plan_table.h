// Plans side by side: the aspects in rows, up to four plans in columns.
#pragma once

#include <QAbstractTableModel>
#include <QString>
#include <functional>
#include <vector>

#include "models/answer.h"
#include "questions/compare.h"

namespace shardplan::gui {

inline constexpr std::size_t kMostCompared = 4;

/// Marks a cell that differs from the first plan's.
inline constexpr int kDiffersRole = Qt::UserRole + 2;

class PlanTable : public QAbstractTableModel {
  Q_OBJECT

 public:
  using QAbstractTableModel::QAbstractTableModel;

  /// At most kMostCompared of them are shown.
  void set_plans(std::vector<Alternative> plans, const Calibration& calibration);
  const std::vector<Alternative>& plans() const { return plans_; }

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& at, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  using Words = std::function<QString(const Alternative&)>;
  struct Aspect {
    QString name;
    std::vector<QString> values;  ///< by plan
    Words hint;                   ///< where a value comes from
  };
  void add_gpu_aspects();
  void add_host_aspects();
  void add_speed_aspects();
  void add(const QString& name, const Words& value, Words hint);

  std::vector<Alternative> plans_;
  Calibration calibration_;
  std::vector<Aspect> aspects_;
};

}  // namespace shardplan::gui
