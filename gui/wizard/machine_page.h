// Which machine: found here, from the catalogue, or field by field.
#pragma once

#include <QFormLayout>
#include <QLabel>
#include <QLineEdit>
#include <QTableView>
#include <functional>
#include <vector>

#include "models/detected_machine.h"
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
  /// A figure of the machine: what it is, where it came from, and how a new one is written.
  struct Field {
    QLineEdit* edit;
    QLabel* source;
    std::function<QString(const Cluster&)> read;
    std::function<QString(const Cluster&)> read_source;
    std::function<bool(Cluster&, const QString&)> write;  ///< false: not a figure
    bool own_gpu;
  };

  QLayout* make_choices();
  QLayout* make_fields();
  void add_field(QFormLayout* form, const QString& label, Field field);
  void edit_field(const Field& field);
  void choose(const QString& gpu_or_machine, bool is_machine);
  void use_detected();
  bool is_said(std::string_view pointer) const;

  DetectedMachine detected_;
  QLineEdit* text_;
  QLabel* error_;
  QLabel* notes_;
  std::vector<Field> fields_;
};

}  // namespace shardplan::gui
