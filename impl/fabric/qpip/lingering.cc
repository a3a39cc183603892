#include "impl/fabric/qpip/lingering.h"

#include <array>
#include <utility>

namespace esdp::fabric::qpip {

void Lingering::Add(TcpStream stream, std::vector<std::byte> last_words, Time deadline) {
  while (order_.size() >= kSocketsMax) Erase(order_.front());
  const uint64_t owner =
      sockets_.Insert(Socket{.stream = std::move(stream), .last_words = std::move(last_words)});
  Socket* socket = sockets_.Find(owner);
  if (socket == nullptr) return;
  order_.push_back(owner);
  socket->watch =
      poller_.Watch(socket->stream.descriptor(), Watched::kLingering, owner, true, true);
  poller_.SetDeadline(socket->watch, deadline);
  OnReady(owner);
}

void Lingering::OnReady(uint64_t owner) {
  Socket* socket = sockets_.Find(owner);
  if (socket == nullptr) return;
  if (!Write(*socket) || !Drain(*socket)) {
    Erase(owner);
    return;
  }
  poller_.Change(socket->watch, true, !socket->ended);
}

bool Lingering::Write(Socket& socket) {
  if (socket.ended) return true;
  const ConstBytes words(socket.last_words);
  while (socket.written < words.size()) {
    const IoResult result = socket.stream.Write(words.subspan(socket.written));
    if (result.outcome == IoOutcome::kWouldBlock) return true;
    if (result.outcome != IoOutcome::kMoved) return false;
    socket.written += result.bytes;
  }
  socket.stream.EndWrites();
  socket.ended = true;
  return true;
}

bool Lingering::Drain(Socket& socket) {
  constexpr int kReadsMax = 16;  // others want their turn too
  std::array<std::byte, 4096> unwanted;
  for (int i = 0; i < kReadsMax; ++i) {
    const IoResult result = socket.stream.Read(Bytes(unwanted));
    if (result.outcome == IoOutcome::kWouldBlock) return true;
    if (result.outcome != IoOutcome::kMoved) return false;
  }
  return true;
}

void Lingering::Erase(uint64_t owner) {
  Socket* socket = sockets_.Find(owner);
  if (socket == nullptr) return;
  poller_.Forget(socket->watch);
  sockets_.Erase(owner);
  std::erase(order_, owner);
}

}  // namespace esdp::fabric::qpip
