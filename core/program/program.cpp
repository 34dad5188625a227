#include "program/program.h"

#include <cassert>
#include <utility>

#include "base/checked.h"

namespace shardplan {

std::int64_t total_bytes(const std::vector<Event>& residents) {
  std::int64_t sum = 0;
  for (const Event& e : residents) sum = checked_add(sum, checked_mul(e.bytes, e.count));
  return sum;
}

std::size_t matching_end(const std::vector<Event>& events, std::size_t begin) {
  int depth = 0;
  for (std::size_t i = begin; i < events.size(); ++i) {
    if (events[i].kind == Event::Kind::begin_repeat) ++depth;
    if (events[i].kind == Event::Kind::end_repeat && --depth == 0) return i;
  }
  assert(false && "a repetition without an end");
  return events.size();
}

void ProgramBuilder::resident(Category category, std::int64_t bytes, std::int64_t count) {
  if (bytes == 0) return;
  Event e;
  e.category = category;
  e.bytes = bytes;
  e.count = count;
  program_.resident.push_back(e);
}

void ProgramBuilder::alloc(Category category, std::int64_t bytes, Stream pool) {
  if (bytes == 0) return;
  Event e;
  e.category = category;
  e.bytes = bytes;
  e.stream = pool;
  program_.events.push_back(e);
}

void ProgramBuilder::free(Category category, std::int64_t bytes, Stream pool) {
  if (bytes == 0) return;
  Event e;
  e.kind = Event::Kind::free;
  e.category = category;
  e.bytes = bytes;
  e.stream = e.used_on = pool;
  program_.events.push_back(e);
}

void ProgramBuilder::free_used_on(Stream user, Category category, std::int64_t bytes, Stream pool) {
  if (bytes == 0) return;
  free(category, bytes, pool);
  program_.events.back().used_on = user;
}

void ProgramBuilder::alloc_named(Category category, std::int64_t bytes, std::int32_t name,
                                 Stream pool) {
  if (bytes == 0) return;
  alloc(category, bytes, pool);
  program_.events.back().name = name;
}

void ProgramBuilder::free_named(Category category, std::int64_t bytes, std::int32_t name,
                                Stream pool) {
  if (bytes == 0) return;
  free(category, bytes, pool);
  program_.events.back().name = name;
}

void ProgramBuilder::free_older(Category category, std::int64_t bytes, std::int32_t name) {
  if (bytes == 0) return;
  free_named(category, bytes, name);
  program_.events.back().older = true;
}

void ProgramBuilder::free_oldest(Category category, std::int64_t bytes, std::int32_t name,
                                 Stream pool) {
  if (bytes == 0) return;
  free_named(category, bytes, name, pool);
  program_.events.back().oldest = true;
}

void ProgramBuilder::blocks(std::int32_t first, std::int64_t count) {
  if (count == 0) return;
  Event e;
  e.kind = Event::Kind::blocks;
  e.first = first;
  e.count = count;
  program_.events.push_back(e);
}

void ProgramBuilder::once(std::int64_t step, std::vector<Event> events, Chance chance) {
  if (events.empty()) return;
  Event e;
  e.kind = Event::Kind::once;
  e.count = static_cast<std::int64_t>(program_.once.size());
  program_.once.push_back({step, std::move(events)});
  program_.once.back().chance = chance;
  program_.events.push_back(e);
}

void ProgramBuilder::in_first_step(std::vector<Event> events) {
  if (events.empty()) return;
  once(1, std::move(events));
  program_.once.back().makes_residents = false;
}

void ProgramBuilder::times_kernel(std::int32_t id, std::int64_t bytes) {
  if (!timed_.insert(id).second) return;
  Event made;
  made.category = Category::workspace;
  made.bytes = bytes;
  Event gone = made;
  gone.kind = Event::Kind::free;
  in_first_step({made, gone});
  program_.once.back().first_time = true;
}

void ProgramBuilder::makes_workspace(std::int64_t bytes) {
  Event e;
  e.category = Category::workspace;
  e.bytes = bytes;
  in_first_step({e});
  program_.once.back().workspace = bytes;
}

void ProgramBuilder::transient(Category category, std::int64_t bytes, Stream pool) {
  alloc(category, bytes, pool);
  free(category, bytes, pool);
}

std::int32_t ProgramBuilder::add_kernels(const std::vector<Kernel>& kernels) {
  const auto first = static_cast<std::int32_t>(program_.kernels.size());
  program_.kernels.insert(program_.kernels.end(), kernels.begin(), kernels.end());
  return first;
}

void ProgramBuilder::compute(std::int32_t first, std::int64_t count) {
  if (count == 0) return;
  Event e;
  e.kind = Event::Kind::compute;
  e.first = first;
  e.count = count;
  program_.events.push_back(e);
}

void ProgramBuilder::host_work(Issue issue, std::int32_t calls) {
  if (calls == 0) return;
  Kernel kernel;
  kernel.issue = issue;
  kernel.calls = calls;
  program_.kernels.push_back(kernel);
  compute(static_cast<std::int32_t>(program_.kernels.size()) - 1, 1);
}

void ProgramBuilder::gather_ahead(std::int64_t bytes, std::string_view what, Group group) {
  if (bytes == 0) return;
  collective(Collective::all_gather, bytes, what, 1, group);
  program_.events.back().ahead = true;
}

void ProgramBuilder::gather_buckets(std::int64_t bytes, std::string_view what, std::int64_t buckets,
                                    Group group) {
  if (bytes == 0) return;
  collective(Collective::all_gather, bytes, what, buckets, group);
  program_.events.back().ahead = program_.events.back().bucketed = true;
}

void ProgramBuilder::reduce_buckets(Collective kind, std::int64_t bytes, std::string_view what,
                                    std::int64_t buckets, Group group) {
  if (bytes == 0) return;
  collective(kind, bytes, what, buckets, group);
  program_.events.back().bucketed = true;
}

void ProgramBuilder::wait(Stream stream, std::int64_t but_last) {
  Event e;
  e.kind = Event::Kind::wait;
  e.stream = stream;
  e.bytes = but_last;
  program_.events.push_back(e);
}

void ProgramBuilder::empty_cache() {
  Event e;
  e.kind = Event::Kind::empty_cache;
  program_.events.push_back(e);
}

void ProgramBuilder::synchronize() {
  Event e;
  e.kind = Event::Kind::synchronize;
  program_.events.push_back(e);
}

void ProgramBuilder::follow(Stream stream) {
  Event e;
  e.kind = Event::Kind::follow;
  e.stream = stream;
  program_.events.push_back(e);
}

void ProgramBuilder::mark(Stream stream, std::int32_t name, std::int64_t marks) {
  Event e;
  e.kind = Event::Kind::mark;
  e.stream = stream;
  e.name = name;
  e.count = marks;
  program_.events.push_back(e);
}

void ProgramBuilder::throttle(std::int32_t name, std::int64_t marks, bool keeps_passed) {
  Event e;
  e.kind = Event::Kind::throttle;
  e.name = name;
  e.count = marks;
  e.keeps_passed = keeps_passed;
  program_.events.push_back(e);
}

void ProgramBuilder::collective(Collective kind, std::int64_t bytes, std::string_view what,
                                std::int64_t calls, Group group) {
  if (bytes == 0) return;
  Event e;
  e.kind = Event::Kind::collective;
  e.group = group;
  e.stream = Stream::communication;
  e.collective = kind;
  e.bytes = bytes;
  e.count = calls;
  e.what = what;
  program_.events.push_back(e);
}

void ProgramBuilder::exchange(Collective kind, Group group, std::int64_t bytes,
                              std::string_view what, bool ahead, std::int64_t messages) {
  if (bytes == 0) return;
  collective(kind, bytes, what, 1, group);
  program_.events.back().ahead = ahead;
  program_.events.back().messages = messages;
}

void ProgramBuilder::host_optimizer(HostOptimizer optimizer, std::int64_t elements, bool ahead) {
  Event e;
  e.kind = Event::Kind::host_optimizer;
  e.optimizer = optimizer;
  e.bytes = elements;
  e.ahead = ahead;
  program_.events.push_back(e);
}

void ProgramBuilder::copy(LinkKind link, bool to_device, std::int64_t bytes,
                          std::string_view what) {
  if (bytes == 0) return;
  Event e;
  e.kind = Event::Kind::copy;
  e.stream = Stream::copy;
  e.link = link;
  e.to_device = to_device;
  e.bytes = bytes;
  e.what = what;
  program_.events.push_back(e);
}

void ProgramBuilder::fetch_ahead(LinkKind link, std::int64_t bytes, std::string_view what) {
  if (bytes == 0) return;
  copy(link, true, bytes, what);
  program_.events.back().ahead = true;
}

void ProgramBuilder::store_ahead(LinkKind link, std::int64_t bytes, std::string_view what) {
  if (bytes == 0) return;
  copy(link, false, bytes, what);
  program_.events.back().ahead = true;
}

void ProgramBuilder::begin_phase(Phase phase) {
  Event e;
  e.kind = Event::Kind::begin_phase;
  e.phase = phase;
  program_.events.push_back(e);
}

void ProgramBuilder::end_phase(Phase phase) {
  Event e;
  e.kind = Event::Kind::end_phase;
  e.phase = phase;
  program_.events.push_back(e);
}

void ProgramBuilder::begin_repeat(std::int64_t count) {
  Event e;
  e.kind = Event::Kind::begin_repeat;
  e.count = count;
  program_.events.push_back(e);
}

void ProgramBuilder::end_repeat() {
  Event e;
  e.kind = Event::Kind::end_repeat;
  program_.events.push_back(e);
}

void ProgramBuilder::gradients_whole() {
  Event e;
  e.kind = Event::Kind::gradients_whole;
  program_.events.push_back(e);
}

}  // namespace shardplan
