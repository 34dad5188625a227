// Every option that a job can say, of every table that is about it: what the training page lists,
// so that an option that is new in a table is in the window too.
#pragma once

#include <QAbstractTableModel>
#include <QCoreApplication>
#include <QString>
#include <string>
#include <vector>

#include "models/session.h"
#include "options/option.h"

namespace shardplan::gui {

/// One option, and where a job says it.
struct OptionRow {
  const OptionInfo* info = nullptr;
  std::string pointer;   ///< "/workload/engine/block_size"
  OptionValue fallback;  ///< what holds when it is left open, unless a rule says otherwise
};

/// Of the tables that apply to the job: its kind of work and its framework; where several models
/// take part, also what each beside the actor can say for itself ("/workload/models/critic/model").
std::vector<OptionRow> option_rows(const Job& job);

class OptionsModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  enum Column { kKey, kValue, kHelp, kColumns };

  explicit OptionsModel(Session& session, QObject* parent = nullptr);

  /// Brings the rows up to the session's job. Without an answer the rows stay, so that what is
  /// wrong can be taken back.
  void refresh();
  const OptionRow& row(int at) const { return rows_[static_cast<std::size_t>(at)]; }
  int row_of(std::string_view pointer) const;
  /// What an option can be, in a line: its choices or its range; "" for any text.
  static QString range(const OptionInfo& option);
  /// "left open: 16", as the first choice and the placeholder say it.
  static QString open_words(const OptionRow& row);

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& at, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;
  Qt::ItemFlags flags(const QModelIndex& at) const override;
  /// Writes what was typed or chosen into the job; "" leaves the option open. What cannot be is
  /// written as it is, and the answer says what is wrong with it.
  bool setData(const QModelIndex& at, const QVariant& value, int role = Qt::EditRole) override;

 private:
  QString value_of(const OptionRow& row) const;
  /// What the answer finds wrong with the option; "": nothing.
  QString error_of(const OptionRow& row) const;

  Session& session_;
  std::vector<OptionRow> rows_;
};

}  // namespace shardplan::gui
