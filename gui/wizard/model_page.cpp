#include "wizard/model_page.h"

#include <QHBoxLayout>
#include <QPushButton>
#include <QSortFilterProxyModel>
#include <QVBoxLayout>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "job/fields.h"
#include "models/core_words.h"
#include "models/messages.h"
#include "models/provenance.h"
#include "models/text.h"
#include "views/widgets.h"

namespace shardplan::gui {

ModelPage::ModelPage(Session& session, QWidget* parent) : Page(session, tr("Model"), parent) {
  text_ = new QLineEdit(this);
  text_->setObjectName(QStringLiteral("model"));
  text_->setPlaceholderText(tr("llama-2-7b, 7B, or the path of a config.json"));
  text_->setAccessibleName(tr("Model"));
  add_clear_button(text_);
  explain(text_, tr("Model"),
          tr("A name of the catalogue, a size such as 7B, or the path of a model's config.json."));
  question_ = new QLabel(this);
  question_->setBuddy(text_);
  auto* open = new QPushButton(tr("Open &config.json…"), this);
  connect(open, &QPushButton::clicked, this, &ModelPage::open_asked);
  error_ = make_error(this);
  facts_ = make_text(this);
  assumed_ = make_text(this);
  catalogue_ = make_table(CatalogueModels::models(this), tr("Catalogue of models"), this, true);
  catalogue_->setObjectName(QStringLiteral("catalogue_models"));
  tensors_ = CatalogueModels::tensors(this);

  auto* first = new QHBoxLayout;
  first->addWidget(text_, 1);
  first->addWidget(open);
  auto* right = new QVBoxLayout;
  right->addWidget(facts_);
  right->addWidget(make_table(tensors_, tr("Parameters by group"), this), 1);
  right->addWidget(assumed_);
  auto* halves = new QHBoxLayout;
  halves->addWidget(catalogue_, 1);
  halves->addWidget(make_box(tr("What it is made of"), right, this), 1);
  auto* layout = new QVBoxLayout(this);
  layout->addWidget(question_);
  layout->addLayout(first);
  layout->addWidget(error_);
  layout->addLayout(halves, 1);

  write_while_typed(text_, [this](const QString& typed) {
    static_cast<QSortFilterProxyModel*>(catalogue_->model())->setFilterFixedString(typed);
    choose(typed);
  });
  connect(text_, &QLineEdit::returnPressed, this, &Page::done);
  on_chosen(catalogue_,
            [this](const QModelIndex& row) { choose(row.siblingAtColumn(0).data().toString()); });
}

void ModelPage::take_focus() {
  text_->setFocus();
  text_->selectAll();
}

void ModelPage::choose(const QString& typed) {
  const QString name = typed.trimmed();
  session().document().set("/model", name.isEmpty() ? Json(nullptr) : Json(name.toStdString()));
}

void ModelPage::refresh() {
  const Model* model = answer().the_model();
  question_->setText(trains() ? tr("Which &model will be trained?") : tr("Which &model will run?"));
  const auto said = field_of(document().json(), "/model");
  show_in(text_, said && said->is_string() ? text(said->get<std::string>())
                 : model                   ? text(model->facts.model_type)
                                           : QString());
  const bool is_wrong = model == nullptr && said && answer().error;
  show_error_at(text_, error_, is_wrong ? Messages::of(*answer().error) : QString());
  if (model == nullptr) {
    facts_->setText(tr("Nothing chosen yet."));
    assumed_->clear();
    tensors_->set_rows({});
    return;
  }
  const ModelFacts& f = model->facts;
  QString facts = tr("<b>%1</b>: %2 parameters (%3) in %4 tensors")
                      .arg(text(f.name.empty() ? f.model_type : f.name).toHtmlEscaped(),
                           text(format_count(model->parameter_count())),
                           text(format_parameters(model->parameter_count())),
                           text(format_count(model->tensor_count())));
  if (f.hidden > 0)
    facts += tr("<br>%1: %2 layers, hidden size %3, %4 heads (%5 for keys and values), "
                "vocabulary %6")
                 .arg(text(f.model_type).toHtmlEscaped(), text(format_count(f.layers)),
                      text(format_count(f.hidden)), text(format_count(f.attention_heads)),
                      text(format_count(f.key_value_heads)), text(format_count(f.vocabulary)));
  facts_->setText(facts);
  set_hint(facts_, Provenance::standing(Source::exact));
  QStringList assumed;
  for (const std::string& a : f.assumed) assumed.push_back(tr("assumed: %1").arg(words(a)));
  assumed_->setText(assumed.join(QLatin1Char('\n')));
  tensors_->set_rows(CatalogueModels::tensors_of(*model));
}

}  // namespace shardplan::gui
