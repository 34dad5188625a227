#include "wizard/start_page.h"

#include <QFileInfo>
#include <QHBoxLayout>
#include <QPushButton>
#include <QVBoxLayout>
#include <nlohmann/json.hpp>

#include "models/asked_question.h"
#include "models/recent_files.h"
#include "views/report_style.h"
#include "views/widgets.h"

namespace shardplan::gui {
StartPage::StartPage(Session& session, QWidget* parent) : Page(session, tr("Start"), parent) {
  auto* title = new QLabel(tr("&What will run on which machine?"), this);
  QFont of_title = sized(font(), TypeSize::title);
  of_title.setBold(true);
  title->setFont(of_title);
  question_ = new QLineEdit(this);
  question_->setObjectName(QStringLiteral("question"));
  question_->setPlaceholderText(tr("7B on 4x40GB, or the path of a job, a config.json or records"));
  question_->setAccessibleName(tr("Question or file"));
  add_clear_button(question_);
  title->setBuddy(question_);
  question_->setFont(sized(font(), TypeSize::large));
  error_ = make_error(this);
  error_->setObjectName(QStringLiteral("question_error"));
  auto* go = new QPushButton(tr("&Answer"), this);
  go->setObjectName(QStringLiteral("answer"));
  auto* row = new QHBoxLayout;
  row->addWidget(question_, 1);
  row->addWidget(go);
  auto* lists = new QHBoxLayout;
  lists->addWidget(make_examples(), 1);
  lists->addWidget(make_recent(), 1);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(12 * space(), 4 * space(), 12 * space(), 2 * space());
  layout->setSpacing(space());
  layout->addWidget(title);
  layout->addLayout(row);
  layout->addWidget(error_);
  layout->addSpacing(16);
  layout->addLayout(lists, 1);
  layout->addLayout(make_ways());
  connect(question_, &QLineEdit::returnPressed, this, &StartPage::ask);
  connect(question_, &QLineEdit::textEdited, this,
          [this] { show_error_at(question_, error_, {}); });
  connect(go, &QPushButton::clicked, this, &StartPage::ask);
}

QWidget* StartPage::make_examples() {
  examples_ = new QListWidget(this);
  examples_->setObjectName(QStringLiteral("examples"));
  examples_->setAccessibleName(tr("Examples"));
  examples_->setSpacing(half_space());
  for (const char* question :
       {"7B on 4x40GB", "llama-3.1-8b on 8xH100", "qwen2.5-7b on 1xRTX4090 with QLoRA",
        "llama-3.1-70b on 2x8xH100", "mixtral-8x7b on p5.48xlarge with LoRA", "gpt2 on 1x24GB"})
    examples_->addItem(QString::fromLatin1(question));
  connect(examples_, &QListWidget::itemActivated, this, [this](const QListWidgetItem* item) {
    question_->setText(item->text());
    ask();
  });
  auto* layout = new QVBoxLayout;
  layout->addWidget(examples_);
  return make_box(tr("Examples"), layout, this);
}

QWidget* StartPage::make_recent() {
  recent_ = new QListWidget(this);
  recent_->setObjectName(QStringLiteral("recent"));
  recent_->setAccessibleName(tr("Recent jobs"));
  recent_->setSpacing(half_space());
  connect(recent_, &QListWidget::itemActivated, this, [this](const QListWidgetItem* item) {
    if (const QString path = item->data(Qt::UserRole).toString(); !path.isEmpty())
      Q_EMIT file_chosen(path);
  });
  auto* open = new QPushButton(tr("&Open a file…"), this);
  connect(open, &QPushButton::clicked, this, &StartPage::open_asked);
  auto* layout = new QVBoxLayout;
  layout->addWidget(recent_, 1);
  layout->addWidget(open, 0, Qt::AlignLeft);
  return make_box(tr("Recent jobs"), layout, this);
}

QLayout* StartPage::make_ways() {
  auto* bar = new QHBoxLayout;
  const auto add = [&](const QString& words, const char* page) {
    auto* button = new QPushButton(words, this);
    connect(button, &QPushButton::clicked, this,
            [this, page] { Q_EMIT page_asked(QLatin1String(page)); });
    bar->addWidget(button);
  };
  add(tr("Choose step by &step"), "machine");
  add(tr("Find a machine to &rent"), "rent");
  add(tr("&Measure on this machine"), "validate");
  bar->addStretch();
  return bar;
}

void StartPage::take_focus() {
  question_->setFocus();
  question_->selectAll();
}

void StartPage::refresh() {
  recent_->clear();
  for (const QString& path : recent_files()) {
    auto* item = new QListWidgetItem(QFileInfo(path).fileName(), recent_);
    item->setData(Qt::UserRole, path);
    item->setToolTip(path);
  }
  if (recent_->count() == 0) {
    auto* none = new QListWidgetItem(tr("Jobs that you save or open are listed here."), recent_);
    none->setFlags(Qt::NoItemFlags);
  }
}

void StartPage::ask() {
  const QString typed = question_->text().trimmed();
  if (typed.isEmpty()) return;
  if (QFileInfo(typed).isFile()) return Q_EMIT file_chosen(QFileInfo(typed).absoluteFilePath());
  const AskedQuestion::Read read = AskedQuestion::read(typed, workbench().hardware);
  show_error_at(question_, error_, read.error);
  if (read.error.isEmpty()) Q_EMIT job_chosen(read.job);
}

}  // namespace shardplan::gui
