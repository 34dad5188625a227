#include "kernels/host/crew/cpus.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <map>
#include <string>
#include <thread>

namespace shardplan::validator::host {
namespace {

/// "0-3,8" as the kernel writes lists of CPUs.
std::vector<int> listed(const std::string& text) {
  std::vector<int> cpus;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    int first = 0;
    const auto [after, error] = std::from_chars(at, end, first);
    if (error != std::errc{}) break;
    int last = first;
    at = after;
    if (at < end && *at == '-') at = std::from_chars(at + 1, end, last).ptr;
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
    while (at < end && (*at == ',' || *at == '\n')) ++at;
  }
  return cpus;
}

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::vector<int> allowed() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    for (std::size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(cpu, &set)) cpus.push_back(static_cast<int>(cpu));
  if (cpus.empty())  // more CPUs than a set has room for
    for (unsigned cpu = 0; cpu < std::max(1U, std::thread::hardware_concurrency()); ++cpu)
      cpus.push_back(static_cast<int>(cpu));
  return cpus;
}

std::map<int, int> nodes_of_cpus() {
  std::map<int, int> nodes;
  for (const int node : listed(first_line("/sys/devices/system/node/online")))
    for (const int cpu :
         listed(first_line("/sys/devices/system/node/node" + std::to_string(node) + "/cpulist")))
      nodes[cpu] = node;
  return nodes;
}

/// Numbers that are alone in a file or lead its first line; nothing for "max" and for no file.
std::vector<double> numbers_in(const std::string& path) {
  std::vector<double> numbers;
  std::ifstream file(path);
  for (double number = 0; file >> number;) numbers.push_back(number);
  return numbers;
}

/// CPUs' time that the control group may use; 0: no limit.
int quota() {
  const std::string root = "/sys/fs/cgroup/";
  std::vector<double> told = numbers_in(root + "cpu.max");  // most, period
  if (told.size() < 2) {                                    // version 1
    told = numbers_in(root + "cpu/cpu.cfs_quota_us");
    for (const double period : numbers_in(root + "cpu/cpu.cfs_period_us")) told.push_back(period);
  }
  if (told.size() < 2 || told[0] <= 0 || told[1] <= 0) return 0;
  return std::max(1, static_cast<int>(std::floor(told[0] / told[1])));
}

}  // namespace

Cpus cpus_of(const RankShare& share) {
  Cpus all{allowed(), true};
  std::map<int, int> nodes = nodes_of_cpus();
  std::stable_sort(all.numbers.begin(), all.numbers.end(),
                   [&](int a, int b) { return nodes[a] < nodes[b]; });
  const auto there = static_cast<int>(all.numbers.size());
  const int most = quota();
  all.pinned = most == 0 || most >= there;
  const int usable = all.pinned ? there : most;
  const int first = usable * share.index / share.count;
  const int last = std::max(first + 1, usable * (share.index + 1) / share.count);
  Cpus mine{{}, all.pinned};
  for (int i = first; i < last; ++i)
    mine.numbers.push_back(all.numbers[static_cast<std::size_t>(i % there)]);
  return mine;
}

}  // namespace shardplan::validator::host
