// Which machine: found here, from the catalogue, or field by field.
#pragma once

#include <QFormLayout>
#include <QLabel>
#include <QLineEdit>
#include <QTableView>
#include <vector>

#include "models/detected_machine.h"
#include "models/machine_fields.h"
#include "wizard/page.h"

namespace shardplan::gui {

class MachinePage : public Page {
  Q_OBJECT

 public:
  explicit MachinePage(Session& session, QWidget* parent = nullptr);
  void take_focus() override;

 protected:
  void refresh() override;

 private:
  struct Row {
    MachineField field;
    QLineEdit* edit;
    QLabel* source;
    QString marked_beside;  ///< what the field would show, while it shows nonsense that is marked
    bool is_marked = false;
  };

  QLayout* make_choices();
  QLayout* make_fields();
  void add_row(QFormLayout* form, MachineField field);
  void commit(Row& row);
  void show_row(Row& row, const QString& sources);
  void choose(const QString& gpu_or_machine, bool is_machine);
  void use_detected();

  DetectedMachine detected_;
  QLineEdit* text_;
  QLabel* error_;
  QLabel* notes_;
  std::vector<Row> rows_;
};

}  // namespace shardplan::gui
