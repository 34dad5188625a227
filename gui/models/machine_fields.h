// The fields of the machine page: each figure of the cluster, where it comes from, and how a new
// one is written into the job.
#pragma once

#include <QCoreApplication>
#include <QString>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "models/session.h"

namespace shardplan::gui {

struct MachineField {
  QString label;
  QString help = {};     ///< what it is, and what it decides
  std::string pointer;   ///< of the job: tells whether the job says it
  double unit = 1;       ///< what 1 of the field is in core's units: bytes, bytes/s, FLOP/s
  bool whole = false;    ///< a count
  bool own_gpu = false;  ///< a figure of the GPU itself: it is no more the catalogue's then
  std::string key;       ///< of the cluster that can be said beside a name; "": all is written out
  std::function<std::optional<double>(const Cluster&)> read;   ///< in core's units
  std::function<void(Cluster&, std::optional<double>)> write;  ///< nullopt: not known
  std::function<QString(const Cluster&)> known;                ///< when the job does not say
  bool may_be_unknown = false;
  std::function<bool(const Cluster&)> applies;  ///< empty: always

  bool can_be_said(const Cluster& cluster) const { return !applies || applies(cluster); }
  /// As the field shows it; "" when it is not known.
  QString text_of(const Cluster& cluster) const;
  /// "given", "catalogue", "catalogue, not verified", "assumed", "not known"
  QString standing(const Session& session) const;
  /// Writes what was typed; false when that is no figure.
  bool commit(Session& session, const QString& typed) const;
};

class MachineFields {
  Q_DECLARE_TR_FUNCTIONS(MachineFields)

 public:
  static std::vector<MachineField> all();
  static QString given();
  static QString not_known();
  /// Who says what the catalogue has of a GPU; "" for one that is not in it.
  static QString sources(const Cluster& cluster, const HardwareCatalog& catalog);

 private:
  static void add_counts(std::vector<MachineField>& fields);
  static void add_gpu(std::vector<MachineField>& fields);
  static void add_links(std::vector<MachineField>& fields);
  static void add_node(std::vector<MachineField>& fields);
  static QString help_of(const std::string& pointer);
};

}  // namespace shardplan::gui
