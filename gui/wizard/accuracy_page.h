// How far to trust it: predictions against the records of measured runs, all of them or those that
// are like the job.
#pragma once

#include <QCheckBox>
#include <QComboBox>
#include <QLineEdit>
#include <QProgressBar>
#include <QPushButton>
#include <QTableView>
#include <memory>

#include "models/accuracy_models.h"
#include "models/background.h"
#include "models/record_library.h"
#include "views/plot_view.h"
#include "views/text_label.h"
#include "wizard/page.h"

namespace shardplan::gui {

class AccuracyPage : public Page {
  Q_OBJECT

 public:
  AccuracyPage(Session& session, RecordLibrary& library, QWidget* parent = nullptr);
  bool is_busy() const override { return work_.is_running() || likeness_.is_running(); }
  /// Copies files of records to the person's own.
  void add_records(const QStringList& paths);

 Q_SIGNALS:
  void job_chosen(const Json& job);  ///< of a record

 protected:
  void refresh() override;

 private:
  struct Compared {
    Accuracy accuracy;
    std::shared_ptr<const MeasuredRuns> runs;
  };

  QLayout* make_filter();
  QWidget* make_tables();
  QLayout* make_buttons();
  void compare();
  void show_compared(Compared compared);
  void find_likeness();
  void show_rows();
  void select(int row);
  int selected_row() const;
  void ask_for_records();
  void remove_selected();
  void show_buttons();

  RecordLibrary& library_;
  TextLabel *about_, *like_;
  QProgressBar* progress_;
  QComboBox *figure_, *kind_;
  QLineEdit* words_;
  QCheckBox* only_like_;
  PlotView* plot_;
  QTableView* table_;
  QPushButton *open_, *remove_;
  RowsModel<SummaryRow>* summaries_;
  RowsModel<RecordRow>* records_;
  std::vector<RecordRow> all_;
  std::optional<SimilarRecords> likeness_found_;
  std::shared_ptr<const MeasuredRuns> runs_;
  std::optional<quint64> likeness_of_;  ///< the session's answers when it was looked for
  bool is_begun_ = false;
  Background work_, likeness_;
};

}  // namespace shardplan::gui
