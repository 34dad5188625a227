#include "report/sections/sections.h"
#include "report/words.h"

namespace shardplan::report {

Section reproduction_section(const Findings& f) {
  constexpr std::size_t kLongest = 16'000;  // a job that lists its tensors can have megabytes
  Section section{"reproduction",
                  {Paragraph{message("reproduction.command", {{"version", f.origin.version}})},
                   Code{"command", f.origin.command}}};
  if (f.origin.job.size() > kLongest) {
    section.blocks.push_back(Paragraph{
        message("reproduction.long_job",
                {{"size", bytes(static_cast<std::int64_t>(f.origin.job.size()), Source::exact)}})});
    return section;
  }
  section.blocks.push_back(Paragraph{message("reproduction.job")});
  section.blocks.push_back(Code{"job", f.origin.job});
  return section;
}

}  // namespace shardplan::report
