#include "program/program.h"

namespace shardplan {

void ProgramBuilder::resident(Category category, std::int64_t bytes) {
  if (bytes == 0) return;
  Event e;
  e.category = category;
  e.bytes = bytes;
  program_.resident.push_back(e);
}

void ProgramBuilder::alloc(Category category, std::int64_t bytes) {
  if (bytes == 0) return;
  Event e;
  e.category = category;
  e.bytes = bytes;
  program_.events.push_back(e);
}

void ProgramBuilder::free(Category category, std::int64_t bytes) {
  if (bytes == 0) return;
  Event e;
  e.kind = Event::Kind::free;
  e.category = category;
  e.bytes = bytes;
  program_.events.push_back(e);
}

void ProgramBuilder::transient(Category category, std::int64_t bytes) {
  alloc(category, bytes);
  free(category, bytes);
}

void ProgramBuilder::compute(double flops, double moved_bytes, std::int64_t kernels) {
  Event e;
  e.kind = Event::Kind::compute;
  e.flops = flops;
  e.moved_bytes = moved_bytes;
  e.count = kernels;
  program_.events.push_back(e);
}

void ProgramBuilder::collective(Collective kind, std::int64_t bytes, std::string_view what,
                                std::int64_t calls) {
  if (bytes == 0) return;
  Event e;
  e.kind = Event::Kind::collective;
  e.stream = Stream::communication;
  e.collective = kind;
  e.bytes = bytes;
  e.count = calls;
  e.what = what;
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
