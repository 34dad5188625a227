#include "comm/roster.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <span>

#include "base/diagnostic.h"
#include "device/errors.h"

namespace shardplan::validator {
namespace {

[[noreturn]] void refuse(const std::string& message) {
  throw InputError({.file = "<environment>",
                    .key = "JOB",
                    .message = message,
                    .expected = "the same job file and options everywhere"});
}

Json json_of(const Member& m) {
  return {{"first_rank", m.first_rank}, {"ranks", m.ranks}, {"node", m.node}};
}

Member member_of(const Json& j) {
  return {j.at("first_rank").get<int>(), j.at("ranks").get<int>(), j.at("node").get<std::string>()};
}

}  // namespace

int Roster::world() const {
  return members.back().first_rank + members.back().ranks;
}

int Roster::member_of(int rank) const {
  std::size_t at = 0;
  while (at + 1 < members.size() && members[at + 1].first_rank <= rank) ++at;
  return static_cast<int>(at);
}

void send_frame(const Socket& socket, const Json& frame) {
  const std::string text = frame.dump();
  const auto length = static_cast<std::uint32_t>(text.size());
  std::vector<std::byte> bytes(sizeof length + text.size());
  std::memcpy(bytes.data(), &length, sizeof length);
  std::memcpy(bytes.data() + sizeof length, text.data(), text.size());
  socket.send(bytes);
}

Json receive_frame(const Socket& socket) {
  constexpr std::uint32_t kMost = 1U << 30;
  std::uint32_t length = 0;
  socket.receive(std::as_writable_bytes(std::span(&length, 1)));
  if (length > kMost) throw PeerFailure("a process that is not of this run has called");
  std::string text(length, '\0');
  socket.receive(std::as_writable_bytes(std::span(text)));
  return Json::parse(text);
}

RollCall call_roll(const Star& star, const Member& mine, const std::string& job, const Json& gift) {
  RollCall call;
  call.roster.mine = star.rank();
  const Json me{{"member", json_of(mine)}, {"job", job}};
  if (star.rank() != 0) {
    send_frame(star.to(0), me);
    const Json answer = receive_frame(star.to(0));
    if (answer.contains("refused")) refuse(answer["refused"]);
    for (const Json& m : answer.at("members")) call.roster.members.push_back(member_of(m));
    call.gift = answer.at("gift");
    return call;
  }
  Json members = Json::array({json_of(mine)});
  std::string wrong;
  for (int p = 1; p < star.world(); ++p) {
    const Json theirs = receive_frame(star.to(p));
    const Member m = member_of(theirs.at("member"));
    members.push_back(theirs.at("member"));
    if (wrong.empty() && theirs.at("job") != job)
      wrong = fmt::format("rank {} on {} runs another job than rank 0", m.first_rank, m.node);
  }
  const Json answer =
      wrong.empty() ? Json{{"members", members}, {"gift", gift}} : Json{{"refused", wrong}};
  for (int p = 1; p < star.world(); ++p) send_frame(star.to(p), answer);
  if (!wrong.empty()) refuse(wrong);
  for (const Json& m : members) call.roster.members.push_back(member_of(m));
  call.gift = gift;
  return call;
}

}  // namespace shardplan::validator
