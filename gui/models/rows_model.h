// A read-only table over a list of values: what every list of the windows is made of.
#pragma once

#include <QAbstractTableModel>
#include <functional>
#include <utility>
#include <vector>

namespace shardplan::gui {

/// Beside Qt's own roles: the raw value of a cell, by which tables are sorted and bars are drawn.
inline constexpr int kValueRole = Qt::UserRole + 1;

template <typename Row>
class RowsModel final : public QAbstractTableModel {
 public:
  struct Column {
    QString title;
    std::function<QVariant(const Row&, int role)> value;
    bool is_number = false;  ///< aligned to the right
  };

  explicit RowsModel(std::vector<Column> columns, QObject* parent = nullptr)
      : QAbstractTableModel(parent), columns_(std::move(columns)) {}

  /// Keeps selections where the number of rows stays.
  void set_rows(std::vector<Row> rows) {
    if (rows.size() == rows_.size()) {
      rows_ = std::move(rows);
      if (!rows_.empty()) Q_EMIT dataChanged(index(0, 0), index(rowCount() - 1, columnCount() - 1));
      return;
    }
    beginResetModel();
    rows_ = std::move(rows);
    endResetModel();
  }

  /// Other columns, with rows of theirs.
  void set_table(std::vector<Column> columns, std::vector<Row> rows) {
    beginResetModel();
    columns_ = std::move(columns);
    rows_ = std::move(rows);
    endResetModel();
  }

  const std::vector<Row>& rows() const { return rows_; }
  const Row& row(int at) const { return rows_[static_cast<std::size_t>(at)]; }

  int rowCount(const QModelIndex& parent = {}) const override {
    return parent.isValid() ? 0 : static_cast<int>(rows_.size());
  }
  int columnCount(const QModelIndex& parent = {}) const override {
    return parent.isValid() ? 0 : static_cast<int>(columns_.size());
  }
  QVariant data(const QModelIndex& at, int role) const override {
    if (!checkIndex(at, CheckIndexOption::IndexIsValid)) return {};
    const Column& column = columns_[static_cast<std::size_t>(at.column())];
    if (role == Qt::TextAlignmentRole && column.is_number)
      return QVariant::fromValue(Qt::Alignment(Qt::AlignRight | Qt::AlignVCenter));
    if (role == Qt::AccessibleTextRole)
      return QStringLiteral("%1: %2").arg(column.title, data(at, Qt::DisplayRole).toString());
    return column.value(row(at.row()), role);
  }
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override {
    if (orientation != Qt::Horizontal || section < 0 || section >= columnCount()) return {};
    const Column& column = columns_[static_cast<std::size_t>(section)];
    if (role == Qt::TextAlignmentRole && column.is_number)
      return QVariant::fromValue(Qt::Alignment(Qt::AlignRight | Qt::AlignVCenter));
    return role == Qt::DisplayRole ? column.title : QVariant();
  }

 private:
  std::vector<Column> columns_;
  std::vector<Row> rows_;
};

}  // namespace shardplan::gui
