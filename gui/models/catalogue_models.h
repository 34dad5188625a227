// What is built in, as tables: models, GPUs and machines to rent.
#pragma once

#include <QCoreApplication>
#include <QObject>

#include "hardware/catalog.h"
#include "model/model.h"
#include "models/rows_model.h"

namespace shardplan::gui {

struct ModelRow {
  QString name, parameters, aliases, family;
  double count = 0;
};
struct GpuRow {
  QString name, usable, bandwidth, source;
  double bytes = 0;
};
struct MachineRow {
  QString name, provider, gpus, host, source;
};
/// A group of tensors of a model.
struct TensorRow {
  QString name, shape, times, parameters;
  QString hint;  ///< the product
  double count = 0;
};

class CatalogueModels {
  Q_DECLARE_TR_FUNCTIONS(CatalogueModels)

 public:
  static RowsModel<ModelRow>* models(QObject* parent);
  static RowsModel<GpuRow>* gpus(const HardwareCatalog& catalog, QObject* parent);
  static RowsModel<MachineRow>* machines(const HardwareCatalog& catalog, QObject* parent);
  static RowsModel<TensorRow>* tensors(QObject* parent);
  static std::vector<TensorRow> tensors_of(const Model& model);
};

}  // namespace shardplan::gui
