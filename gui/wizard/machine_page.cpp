#include "wizard/machine_page.h"

#include <QHBoxLayout>
#include <QPushButton>
#include <QTabWidget>
#include <QVBoxLayout>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "job/fields.h"
#include "models/catalogue_models.h"
#include "models/messages.h"
#include "models/text.h"
#include "views/widgets.h"

namespace shardplan::gui {
namespace {

constexpr double kGib = 1024.0 * 1024.0 * 1024.0;

QString gib(std::int64_t bytes) {
  return QString::number(static_cast<double>(bytes) / kGib, 'f', 2);
}

QString gigabytes(double rate) {
  return rate > 0 ? QString::number(rate / 1e9, 'g', 6) : QString();
}

/// A positive number, in units of `unit`.
std::optional<double> figure(const QString& text, double unit) {
  bool is_number = false;
  const double value = text.trimmed().toDouble(&is_number);
  return is_number && value > 0 ? std::optional(value * unit) : std::nullopt;
}

std::optional<Bytes> bytes_of(const QString& text) {
  const auto value = figure(text, kGib);
  if (!value || *value > 1e18) return std::nullopt;
  return Bytes(static_cast<std::int64_t>(*value));
}

}  // namespace

MachinePage::MachinePage(Session& session, QWidget* parent)
    : Page(session, tr("Machine"), parent), detected_(detect_machine()) {
  text_ = new QLineEdit(this);
  text_->setObjectName(QStringLiteral("cluster"));
  text_->setPlaceholderText(tr("4xA100-40GB, 2x8xH100, 4x40GB or p4d.24xlarge"));
  text_->setAccessibleName(tr("Machine"));
  text_->setClearButtonEnabled(true);
  error_ = make_error(this);
  notes_ = make_text(this);
  auto* question = new QLabel(tr("Which &machine will it run on?"), this);
  question->setBuddy(text_);

  auto* layout = new QVBoxLayout(this);
  layout->addWidget(question);
  layout->addWidget(text_);
  layout->addWidget(error_);
  auto* halves = new QHBoxLayout;
  halves->addLayout(make_choices(), 3);
  halves->addWidget(make_box(tr("What is known about it"), make_fields(), this), 2);
  layout->addLayout(halves, 1);

  connect(text_, &QLineEdit::textEdited, this, [this](const QString& typed) {
    const QString name = typed.trimmed();
    this->session().document().set("/cluster",
                                   name.isEmpty() ? Json(nullptr) : Json(name.toStdString()));
  });
  connect(text_, &QLineEdit::returnPressed, this, &Page::done);
}

void MachinePage::take_focus() {
  text_->setFocus();
  text_->selectAll();
}

QLayout* MachinePage::make_choices() {
  auto* layout = new QVBoxLayout;
  auto* here = new QPushButton(this);
  const bool usable = !cluster_of(detected_, session().workbench().hardware).is_null();
  if (usable) {
    here->setText(
        tr("&This machine: %1 × %2").arg(detected_.gpus.size()).arg(text(detected_.gpus.front())));
  } else {
    here->setText(tr("&This machine: no known GPU was found"));
    here->setEnabled(false);
  }
  connect(here, &QPushButton::clicked, this, &MachinePage::use_detected);
  layout->addWidget(here);

  auto* tabs = new QTabWidget(this);
  const HardwareCatalog& hardware = session().workbench().hardware;
  const auto add_table = [&](QAbstractItemModel* model, const QString& name, bool is_machine) {
    QTableView* table = make_table(model, name, this, true);
    connect(table->selectionModel(), &QItemSelectionModel::currentRowChanged, this,
            [this, is_machine](const QModelIndex& now) {
              if (now.isValid()) choose(now.siblingAtColumn(0).data().toString(), is_machine);
            });
    tabs->addTab(table, name);
  };
  add_table(CatalogueModels::gpus(hardware, this), tr("GPUs"), false);
  add_table(CatalogueModels::machines(hardware, this), tr("Machines to rent"), true);
  layout->addWidget(tabs, 1);
  return layout;
}

QLayout* MachinePage::make_fields() {
  auto* form = new QFormLayout;
  const auto from_catalogue = [](bool is_unverified) {
    return is_unverified ? tr("catalogue, not verified") : tr("catalogue");
  };
  const auto said = [this](const char* pointer, const QString& otherwise) {
    return is_said(pointer) ? tr("given") : otherwise;
  };
  const auto interconnect = [said](const char* pointer) {
    return [said, pointer](const Cluster& c) {
      return said(pointer,
                  c.interconnect_source == Source::measured ? tr("catalogue") : tr("assumed"));
    };
  };
  add_field(form, tr("GPUs in a node"),
            {.read = [](const Cluster& c) { return QString::number(c.gpus_per_node); },
             .read_source = [](const Cluster&) { return tr("given"); },
             .write =
                 [](Cluster& c, const QString& typed) {
                   c.gpus_per_node = typed.toLongLong();
                   return c.gpus_per_node > 0;
                 }});
  add_field(form, tr("Nodes"),
            {.read = [](const Cluster& c) { return QString::number(c.nodes); },
             .read_source = [](const Cluster&) { return tr("given"); },
             .write =
                 [](Cluster& c, const QString& typed) {
                   c.nodes = typed.toLongLong();
                   return c.nodes > 0;
                 }});
  add_field(form, tr("Usable memory of a GPU, GiB"),
            {.read = [](const Cluster& c) { return gib(c.gpu.usable.count()); },
             .read_source =
                 [said, from_catalogue](const Cluster& c) {
                   return said("/cluster/gpu/usable_bytes",
                               from_catalogue(c.gpu.usable_source == Source::assumed));
                 },
             .write =
                 [](Cluster& c, const QString& typed) {
                   const auto value = bytes_of(typed);
                   if (!value) return false;
                   c.gpu.usable = *value;
                   c.gpu.capacity = std::max(c.gpu.capacity, *value);
                   return true;
                 },
             .own_gpu = true});
  add_field(
      form, tr("Host memory of a node, GiB"),
      {.read =
           [](const Cluster& c) { return c.host_memory ? gib(c.host_memory->count()) : QString(); },
       .read_source =
           [said](const Cluster& c) {
             return said("/cluster/host_memory_bytes",
                         c.host_memory ? tr("catalogue") : tr("not known"));
           },
       .write =
           [](Cluster& c, const QString& typed) {
             c.host_memory = bytes_of(typed);
             return c.host_memory.has_value() || typed.isEmpty();
           }});
  add_field(
      form, tr("NVMe of a node, GiB"),
      {.read = [](const Cluster& c) { return c.nvme ? gib(c.nvme->capacity.count()) : QString(); },
       .read_source =
           [said](const Cluster& c) {
             return said("/cluster/nvme", c.nvme ? tr("catalogue") : tr("not known"));
           },
       .write =
           [](Cluster& c, const QString& typed) {
             const auto value = bytes_of(typed);
             c.nvme = value ? std::optional(Nvme{.capacity = *value}) : std::nullopt;
             return value.has_value() || typed.isEmpty();
           }});
  const auto add_rate = [&](const QString& label, double Cluster::*member, const char* pointer) {
    add_field(form, label,
              {.read = [member](const Cluster& c) { return gigabytes(c.*member); },
               .read_source = interconnect(pointer),
               .write =
                   [member](Cluster& c, const QString& typed) {
                     const auto value = figure(typed, 1e9);
                     if (!value) return false;
                     c.*member = *value;
                     c.interconnect_source = Source::measured;
                     return true;
                   }});
  };
  add_rate(tr("Between GPUs, GB/s"), &Cluster::intra_node_bandwidth,
           "/cluster/interconnect/intra_node_bandwidth");
  add_rate(tr("Between nodes, GB/s a GPU"), &Cluster::inter_node_bandwidth,
           "/cluster/interconnect/inter_node_bandwidth");
  add_field(
      form, tr("Price of a node, an hour"),
      {.read =
           [](const Cluster& c) {
             return c.price_per_hour ? QString::number(*c.price_per_hour) : QString();
           },
       .read_source =
           [said](const Cluster&) { return said("/cluster/price_per_hour", tr("not known")); },
       .write =
           [](Cluster& c, const QString& typed) {
             c.price_per_hour = figure(typed, 1);
             return c.price_per_hour.has_value() || typed.isEmpty();
           }});
  form->addRow(notes_);
  return form;
}

void MachinePage::add_field(QFormLayout* form, const QString& label, Field field) {
  field.edit = new QLineEdit(this);
  field.edit->setMinimumWidth(90);
  field.source = new QLabel(this);
  field.source->setForegroundRole(QPalette::PlaceholderText);
  auto* row = new QHBoxLayout;
  row->addWidget(field.edit, 1);
  row->addWidget(field.source, 1);
  form->addRow(label, row);
  field.edit->setAccessibleName(label);
  fields_.push_back(field);
  connect(field.edit, &QLineEdit::editingFinished, this,
          [this, at = fields_.size() - 1] { edit_field(fields_[at]); });
}

void MachinePage::edit_field(const Field& field) {
  const Cluster* now = answer().the_cluster();
  if (now == nullptr || field.edit->text() == field.read(*now)) return;
  Cluster changed = *now;
  if (!field.write(changed, field.edit->text().trimmed())) {
    field.edit->setText(field.read(*now));
    return;
  }
  session().change_cluster([&](Cluster& c) { c = changed; }, field.own_gpu);
}

void MachinePage::choose(const QString& name, bool is_machine) {
  const Cluster* now = answer().the_cluster();
  const QString count =
      is_machine ? QString() : QStringLiteral("%1x").arg(now ? now->gpus_per_node : 4);
  session().document().set("/cluster", Json((count + name).toStdString()));
}

void MachinePage::use_detected() {
  session().document().set("/cluster", cluster_of(detected_, session().workbench().hardware));
}

bool MachinePage::is_said(std::string_view pointer) const {
  return field_of(document().json(), pointer).has_value();
}

void MachinePage::refresh() {
  const Cluster* c = answer().the_cluster();
  if (!text_->hasFocus()) text_->setText(c ? text(c->label) : QString());
  show_error(error_, c == nullptr && answer().error && !text_->text().isEmpty()
                         ? Messages::of(*answer().error)
                         : QString());
  QStringList notes;
  for (const Field& field : fields_) {
    field.edit->setEnabled(c != nullptr);
    if (!field.edit->hasFocus() || c == nullptr)
      field.edit->setText(c ? field.read(*c) : QString());
    field.source->setText(c ? field.read_source(*c) : QString());
  }
  if (c != nullptr)
    for (const std::string& note : c->notes) notes.push_back(text(note));
  notes_->setText(notes.join(QLatin1Char('\n')));
}

}  // namespace shardplan::gui
