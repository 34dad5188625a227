#include "models/catalogue_models.h"

#include <nlohmann/json.hpp>

#include "base/format.h"
#include "base/units.h"
#include "load/catalog.h"
#include "models/provenance.h"
#include "models/text.h"
#include "render/model_text.h"

namespace shardplan::gui {
namespace {

template <typename Row>
auto catalogue_column(QString title, QString Row::*member, bool is_number = false,
                      double Row::*value = nullptr) {
  return typename RowsModel<Row>::Column{
      std::move(title),
      [member, value](const Row& row, int role) -> QVariant {
        if (role == kValueRole) return value ? QVariant(row.*value) : QVariant(row.*member);
        return role == Qt::DisplayRole || role == Qt::ToolTipRole ? QVariant(row.*member)
                                                                  : QVariant();
      },
      is_number};
}

QStringList list_of(const std::vector<std::string>& items) {
  QStringList out;
  for (const std::string& item : items) out.push_back(text(item));
  return out;
}

}  // namespace

RowsModel<ModelRow>* CatalogueModels::models(QObject* parent) {
  auto* model = new RowsModel<ModelRow>(
      {catalogue_column(tr("model"), &ModelRow::name),
       catalogue_column(tr("parameters"), &ModelRow::parameters, true, &ModelRow::count),
       catalogue_column(tr("family"), &ModelRow::family),
       catalogue_column(tr("also found as"), &ModelRow::aliases)},
      parent);
  std::vector<ModelRow> rows;
  for (const CatalogModel& m : catalog_models())
    rows.push_back({text(m.name), text(format_parameters(m.parameters)),
                    list_of(m.aliases).join(QStringLiteral(", ")), text(m.family),
                    static_cast<double>(m.parameters)});
  model->set_rows(std::move(rows));
  return model;
}

RowsModel<GpuRow>* CatalogueModels::gpus(const HardwareCatalog& catalog, QObject* parent) {
  auto* model = new RowsModel<GpuRow>(
      {catalogue_column(tr("GPU"), &GpuRow::name),
       catalogue_column(tr("usable memory"), &GpuRow::usable, true, &GpuRow::bytes),
       catalogue_column(tr("memory bandwidth"), &GpuRow::bandwidth, true),
       catalogue_column(tr("basis"), &GpuRow::source)},
      parent);
  std::vector<GpuRow> rows;
  for (const CatalogGpu& entry : catalog.gpus) {
    const Gpu& g = entry.gpu;
    const QString rate =
        g.memory_bandwidth ? tr("%1 GB/s").arg(*g.memory_bandwidth / kGiga, 0, 'g', 4) : QString();
    rows.push_back({text(g.name), bytes_text(g.usable.count()), rate,
                    g.unverified.empty() ? tr("confirmed by sources") : tr("partly unverified"),
                    static_cast<double>(g.usable.count())});
  }
  model->set_rows(std::move(rows));
  return model;
}

RowsModel<MachineRow>* CatalogueModels::machines(const HardwareCatalog& catalog, QObject* parent) {
  auto* model =
      new RowsModel<MachineRow>({catalogue_column(tr("machine"), &MachineRow::name),
                                 catalogue_column(tr("provider"), &MachineRow::provider),
                                 catalogue_column(tr("GPUs"), &MachineRow::gpus),
                                 catalogue_column(tr("host memory"), &MachineRow::host, true)},
                                parent);
  std::vector<MachineRow> rows;
  for (const Instance& i : catalog.instances)
    rows.push_back(
        {text(i.name), text(i.provider), QStringLiteral("%1 × %2").arg(i.gpus).arg(text(i.gpu)),
         i.host_memory ? bytes_text(i.host_memory->count()) : QString(), text(i.source)});
  model->set_rows(std::move(rows));
  return model;
}

RowsModel<TensorRow>* CatalogueModels::tensors(QObject* parent) {
  std::vector<RowsModel<TensorRow>::Column> columns{
      catalogue_column(tr("tensor"), &TensorRow::name),
      catalogue_column(tr("shape"), &TensorRow::shape),
      catalogue_column(tr("times"), &TensorRow::times, true),
      catalogue_column(tr("parameters"), &TensorRow::parameters, true, &TensorRow::count)};
  for (auto& c : columns)
    c.value = [value = c.value](const TensorRow& row, int role) {
      return role == Qt::ToolTipRole ? QVariant(row.hint) : value(row, role);
    };
  return new RowsModel<TensorRow>(std::move(columns), parent);
}

std::vector<TensorRow> CatalogueModels::tensors_of(const Model& model) {
  std::vector<TensorRow> rows;
  const Json json = model_json(model, false);
  for (const Json& group : json.at("groups")) {
    QStringList shape;
    for (const Json& extent : group.at("shape"))
      shape.push_back(QString::number(extent.get<qint64>()));
    const auto count = group.at("parameters").get<std::int64_t>();
    const QString times = text(format_count(group.at("count").get<std::int64_t>()));
    rows.push_back({text(group.at("name").get<std::string>()),
                    QStringLiteral("[%1]").arg(shape.join(QStringLiteral(", "))), times,
                    text(format_count(count)),
                    QStringLiteral("%1 × %2 = %3; %4")
                        .arg(shape.join(QStringLiteral(" × ")), times, text(format_count(count)),
                             Provenance::standing(Source::exact)),
                    static_cast<double>(count)});
  }
  return rows;
}

}  // namespace shardplan::gui
