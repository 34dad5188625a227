// The plans that a search found, as rows, names and points of a plot.
#pragma once

#include <QCoreApplication>
#include <QString>
#include <array>
#include <cstdint>
#include <vector>

#include "models/plot/plot.h"
#include "models/rows_model.h"
#include "questions/search/search.h"
#include "questions/search/space.h"

namespace shardplan::gui {

/// What a plan can be measured by.
enum class Measure : std::uint8_t { memory, host_memory, tokens, time_per_token, dollars, gpus };
inline constexpr std::array kMeasures{Measure::memory,  Measure::tokens,
                                      Measure::dollars, Measure::time_per_token,
                                      Measure::gpus,    Measure::host_memory};

/// A plan of the front.
struct FoundRow {
  QString name;                  ///< the choices that set it apart from the others
  std::vector<QString> choices;  ///< of the axes that differ, in their order
  QString memory, host, step, tokens, gpus, dollars;
  QString hint;                      ///< where its numbers come from, and all its choices
  std::array<double, 6> measures{};  ///< by Measure; 0: not known
  double measured_by(Measure m) const { return measures[static_cast<std::size_t>(m)]; }
};

class FoundPlans {
  Q_DECLARE_TR_FUNCTIONS(FoundPlans)

 public:
  static std::vector<FoundRow> rows(const SearchSpace& space, const std::vector<Found>& front);
  /// The numbers, then a column for each choice that differs.
  static std::vector<RowsModel<FoundRow>::Column> columns(const SearchSpace& space,
                                                          const std::vector<Found>& front);
  static QString name_of(Measure measure);
  /// Whether plans with less of it are better.
  static bool less_is_better(Measure measure) { return measure != Measure::tokens; }
  /// The rows that have both measures, and the line of those that no other one beats in them.
  /// `rows_of_points`: the row of each point. `usable_bytes`: of a GPU, 0: not known.
  static PlotData plot(const std::vector<FoundRow>& rows, Measure x, Measure y, double usable_bytes,
                       std::vector<int>& rows_of_points);
};

}  // namespace shardplan::gui
