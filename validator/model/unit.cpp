#include "model/unit.h"

#include <algorithm>
#include <utility>

namespace shardplan::validator {

int add_parameter(Unit& unit, std::string name, Shape shape, Init init) {
  ParameterSpec p{std::move(name), shape, init, unit.numel};
  const std::int64_t rows = init.rows > 0 ? init.rows : shape[0];
  p.whole = shape;
  p.whole_offset = unit.numel;
  p.stretches = {{.length = shape.numel() / shape[0] * rows}};
  unit.parameters.push_back(std::move(p));
  unit.numel = round_up(checked_add(unit.numel, shape.numel()), kElementAlignment);
  return static_cast<int>(unit.parameters.size()) - 1;
}

bool on_two_stages(const Unit& unit) {
  return !unit.frozen && std::any_of(unit.parameters.begin(), unit.parameters.end(),
                                     [](const ParameterSpec& p) { return p.ends != Ends::one; });
}

void number_elements(std::vector<Unit>& units) {
  std::int64_t next = 0;
  for (const bool adapters : {false, true})
    for (Unit& unit : units) {
      if (unit.adapts() != adapters) continue;
      unit.first_element = next;
      next = checked_add(next, unit.numel);
    }
}

bool same_layout(const Unit& a, const Unit& b) {
  return std::equal(a.parameters.begin(), a.parameters.end(), b.parameters.begin(),
                    b.parameters.end(), [](const ParameterSpec& x, const ParameterSpec& y) {
                      return x.shape == y.shape && x.offset == y.offset;
                    });
}

}  // namespace shardplan::validator
