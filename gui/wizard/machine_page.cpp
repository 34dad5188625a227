#include "wizard/machine_page.h"

#include <QHBoxLayout>
#include <QPushButton>
#include <QTabWidget>
#include <QVBoxLayout>
#include <nlohmann/json.hpp>

#include "job/fields.h"
#include "models/catalogue_models.h"
#include "models/core_words.h"
#include "models/messages.h"
#include "models/text.h"
#include "views/report_style.h"
#include "views/widgets.h"

namespace shardplan::gui {
MachinePage::MachinePage(Session& session, QWidget* parent)
    : Page(session, tr("Machine"), parent), detected_(detect_machine()) {
  text_ = new QLineEdit(this);
  text_->setObjectName(QStringLiteral("cluster"));
  text_->setPlaceholderText(tr("4xA100-40GB, 2x8xH100, 4x40GB or p4d.24xlarge"));
  text_->setAccessibleName(tr("Machine"));
  add_clear_button(text_);
  explain(text_, tr("Machine"),
          tr("A number of GPUs and their name or memory, a number of nodes before it, or the name "
             "of a machine to rent."));
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

  write_while_typed(text_, [this](const QString& name) {
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
  here->setObjectName(QStringLiteral("detected"));
  const bool usable = !cluster_of(detected_, workbench().hardware).is_null();
  if (usable) {
    here->setText(
        tr("&This machine: %1 × %2").arg(detected_.gpus.size()).arg(text(detected_.gpus.front())));
  } else {
    here->setText(tr("&This machine: no known GPU was found"));
    here->setEnabled(false);
  }
  connect(here, &QPushButton::clicked, this, &MachinePage::use_detected);
  layout->addWidget(here);
  auto* found = make_text(this);
  found->setText(tr("Found here: %1 of host memory, %2 of NVMe.")
                     .arg(bytes_text(detected_.host_memory), bytes_text(detected_.nvme)));
  found->setObjectName(QStringLiteral("detected_memory"));
  found->setForegroundRole(QPalette::PlaceholderText);
  layout->addWidget(found);

  auto* tabs = new QTabWidget(this);
  const HardwareCatalog& hardware = workbench().hardware;
  const auto add_table = [&](QAbstractItemModel* model, const QString& name, bool is_machine) {
    QTableView* table = make_table(model, name, this, true);
    on_chosen(table, [this, is_machine](const QModelIndex& row) {
      choose(row.siblingAtColumn(0).data().toString(), is_machine);
    });
    table->setObjectName(is_machine ? QStringLiteral("catalogue_machines")
                                    : QStringLiteral("catalogue_gpus"));
    tabs->addTab(table, name);
  };
  add_table(CatalogueModels::gpus(hardware, this), tr("GPUs"), false);
  add_table(CatalogueModels::machines(hardware, this), tr("Machines to rent"), true);
  layout->addWidget(tabs, 1);
  return layout;
}

QLayout* MachinePage::make_fields() {
  auto* fields = new QWidget(this);
  auto* form = new QFormLayout(fields);
  form->setContentsMargins(0, 0, 0, 0);
  form->setVerticalSpacing(half_space());
  for (MachineField& field : MachineFields::all()) add_row(form, std::move(field));
  form->addRow(notes_);
  auto* layout = new QVBoxLayout;
  layout->addWidget(make_scroll(fields, this));
  return layout;
}

void MachinePage::add_row(QFormLayout* form, MachineField field) {
  Row row{std::move(field), new QLineEdit(this), new QLabel(this), {}, false};
  explain(row.edit, row.field.label, row.field.help);
  row.edit->setMinimumWidth(90);
  row.edit->setObjectName(QString::fromStdString(row.field.pointer));
  row.edit->setAccessibleName(row.field.label);
  row.source->setForegroundRole(QPalette::PlaceholderText);
  auto* layout = new QHBoxLayout;
  layout->setSpacing(space());
  layout->addWidget(row.edit, 1);
  layout->addWidget(row.source, 1);
  form->addRow(row.field.label, layout);
  connect(row.edit, &QLineEdit::editingFinished, this,
          [this, at = rows_.size()] { commit(rows_[at]); });
  rows_.push_back(std::move(row));
}

/// What is no figure stays in its field, with a mark, until it is one or the machine is another.
void MachinePage::commit(Row& row) {
  if (!row.edit->isModified()) return;
  row.edit->setModified(false);
  row.is_marked = !row.field.commit(session(), row.edit->text().trimmed());
  if (!row.is_marked) return refresh();
  const Cluster* c = answer().the_cluster();
  row.marked_beside = c ? row.field.text_of(*c) : QString();
  refresh();
}

void MachinePage::show_row(Row& row, const QString& sources) {
  const Cluster* c = answer().the_cluster();
  row.edit->setEnabled(c != nullptr && row.field.can_be_said(*c));
  const QString known = c ? row.field.text_of(*c) : QString();
  if (row.is_marked && (c == nullptr || known != row.marked_beside)) row.is_marked = false;
  const QString wrong = row.field.whole ? tr("a whole number above 0") : tr("a number above 0");
  mark(row.edit, row.is_marked ? tr("Not understood: expected %1").arg(wrong) : QString());
  if (!row.is_marked && (!row.edit->isModified() || c == nullptr)) row.edit->setText(known);
  row.source->setText(row.is_marked ? QStringLiteral("⚠ ") + wrong : row.field.standing(session()));
  row.source->setToolTip(row.field.own_gpu ? sources : QString());
  if (!row.is_marked) row.edit->setAccessibleDescription(row.source->text());
}

void MachinePage::choose(const QString& name, bool is_machine) {
  const Cluster* now = answer().the_cluster();
  const QString count =
      is_machine ? QString() : QStringLiteral("%1x").arg(now ? now->gpus_per_node : 4);
  session().document().set("/cluster", Json((count + name).toStdString()));
}

void MachinePage::use_detected() {
  session().document().set("/cluster", cluster_of(detected_, workbench().hardware));
}

void MachinePage::refresh() {
  const Cluster* c = answer().the_cluster();
  const auto said = field_of(document().json(), "/cluster");
  show_in(text_, said && said->is_string() ? text(said->get<std::string>())
                 : c != nullptr            ? text(c->label)
                                           : QString());
  show_error_at(text_, error_,
                c == nullptr && answer().error && !text_->text().isEmpty()
                    ? Messages::of(*answer().error)
                    : QString());
  const QString sources =
      c ? MachineFields::sources(*c, workbench().hardware).toHtmlEscaped() : QString();
  for (Row& row : rows_) show_row(row, sources);
  QStringList notes;
  if (c != nullptr)
    for (const std::string& note : c->notes) notes.push_back(note_words(note));
  notes_->setText(notes.join(QLatin1Char('\n')));
}

}  // namespace shardplan::gui
