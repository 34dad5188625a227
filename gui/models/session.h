// The job and everything that is known about it; the windows show a session and change its job.
#pragma once

#include <QObject>
#include <QTimer>
#include <memory>
#include <vector>

#include "models/answer.h"
#include "models/background.h"
#include "models/headroom.h"
#include "models/job_document.h"
#include "questions/fixes.h"

namespace shardplan::gui {

class Session : public QObject {
  Q_OBJECT

 public:
  explicit Session(QObject* parent = nullptr);
  ~Session() override;

  JobDocument& document() { return document_; }
  const JobDocument& document() const { return document_; }
  const Workbench& workbench() const { return workbench_; }

  /// Of the job as it is now: computed whenever it changes.
  const Answer& answer() const { return answer_; }

  /// How often that was: a file that a job names may change while the job stays as it is.
  quint64 answers() const { return answers_; }

  /// What would make the job fit or, where it does, faster: found in the background after each
  /// change, none until then.
  const std::vector<Fix>& fixes() const { return fixes_; }
  /// Found with them.
  const std::optional<Headroom>& headroom() const { return headroom_; }
  bool is_finding_fixes() const { return find_fixes_soon_.isActive() || finder_.is_running(); }
  /// Waits for the fixes and takes them over: for pictures, where nobody waits.
  void find_fixes_now();
  /// Makes the job say what the fix does.
  void apply(const Fix& fix);
  /// Edits of a job that is complete, through its plan: a ds_config follows.
  void change_plan(const std::function<void(Plan&)>& edit);
  /// Makes the job say all of a plan that was found for it.
  void use_plan(const Plan& plan);
  /// Edits of the cluster: `key` of it is written where all else stays as it is said, everything
  /// when it is "". With `own_gpu` the GPU's own figures too.
  void change_cluster(const std::function<void(Cluster&)>& edit, bool own_gpu,
                      const std::string& key);

 Q_SIGNALS:
  void answered();
  void fixes_changed();

 private:
  void recompute();
  void find_fixes_later();
  void start_finding_fixes();
  WrittenJob written_job() const;

  Workbench workbench_;
  JobDocument document_;
  Answer answer_;
  quint64 answers_ = 0;
  std::vector<Fix> fixes_;
  std::optional<Headroom> headroom_;
  QTimer find_fixes_soon_;  ///< runs out when the windows have painted the answer
  Background finder_;
};

}  // namespace shardplan::gui
