// Which model: the catalogue, a configuration file, or a size.
#pragma once

#include <QLabel>
#include <QLineEdit>
#include <QTableView>

#include "models/catalogue_models.h"
#include "wizard/page.h"

namespace shardplan::gui {

class ModelPage : public Page {
  Q_OBJECT

 public:
  explicit ModelPage(Session& session, QWidget* parent = nullptr);
  void take_focus() override;

 Q_SIGNALS:
  void open_asked();  ///< the person wants to choose a config.json

 protected:
  void refresh() override;

 private:
  void choose(const QString& name);

  QLineEdit* text_;
  QLabel* question_;
  QLabel* error_;
  QTableView* catalogue_;
  QLabel* facts_;
  QLabel* assumed_;
  RowsModel<TensorRow>* tensors_;
};

}  // namespace shardplan::gui
