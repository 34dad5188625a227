// A run for real: shardplan-validate on this machine, watched step by step, and what it measured
// beside what was predicted.
#pragma once

#include <QComboBox>
#include <QLabel>
#include <QProgressBar>
#include <QPushButton>
#include <QSpinBox>

#include "models/record_library.h"
#include "models/run_models.h"
#include "models/validator_run.h"
#include "views/plot_view.h"
#include "views/text_label.h"
#include "wizard/page.h"

namespace shardplan::gui {

class ValidatePage : public Page {
  Q_OBJECT

 public:
  ValidatePage(Session& session, RecordLibrary& library, QWidget* parent = nullptr);
  bool is_busy() const override { return run_.is_running(); }
  void show_example() override;
  const ValidatorRun& run() const { return run_; }

 protected:
  void refresh() override;

 private:
  enum class Subject : std::uint8_t { job, example };

  QLayout* make_question();
  QLayout* make_plots();
  QWidget* make_cluster();
  QLayout* make_after();
  Subject subject() const;
  /// What the engine would run; null where there is nothing to run.
  Json wanted() const;
  void start();
  void show_run();
  void show_state();
  /// What keeps the job from being run here, or must be known before it is; "" where nothing does.
  QString remark() const;
  void save_job();
  void save_record();
  void keep_record();

  RecordLibrary& library_;
  ValidatorRun run_;
  QComboBox *subject_, *device_;
  QSpinBox* steps_;
  QPushButton *start_, *stop_, *save_record_, *keep_record_, *save_job_, *copy_;
  QProgressBar* progress_;
  TextLabel *state_, *note_;
  QLabel *error_, *command_;
  PlotView *loss_, *memory_;
  RowsModel<MeasuredRow>* rows_;
};

}  // namespace shardplan::gui
