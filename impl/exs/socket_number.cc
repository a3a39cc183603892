#include <cerrno>
#include <utility>

#include "impl/exs/library.h"
#include "impl/exs/socket.h"

// The descriptor that holds a socket's number.

namespace esdp::exs {

std::shared_ptr<ExsSocket> ExsSocket::Make(Socket socket, int family) {
  std::unique_ptr<Place> place = Place::Open();
  if (place == nullptr) return nullptr;
  return std::shared_ptr<ExsSocket>(new ExsSocket(std::move(socket), family, std::move(place)));
}

std::shared_ptr<ExsSocket> ExsSocket::MakeOver(int number, Socket socket, int family) {
  std::unique_ptr<Place> place = Place::OpenOver(number);
  if (place == nullptr) return nullptr;
  return std::shared_ptr<ExsSocket>(new ExsSocket(std::move(socket), family, std::move(place)));
}

ExsSocket::ExsSocket(Socket socket, int family, std::unique_ptr<Place> place)
    : family_(family),
      place_(std::move(place)),
      socket_(std::move(socket)),
      calls_(*this, *place_) {}

ExsSocket::~ExsSocket() = default;

void ExsSocket::GiveUpNumber() {
  (void)place_->GiveUp();
  calls_.Leave();
}

void ExsSocket::WatchNumber() {
  place_->Watch(Library::Current()->helper(), [self = weak_from_this()] {
    if (const auto socket = self.lock(); socket != nullptr) socket->OnNumberClosed();
  });
}

// On the helper's thread. The number may be another's already.
void ExsSocket::OnNumberClosed() {
  if (!place_->NoteClosed()) return;
  Library::Current()->numbers().RemoveSocket(number(), this);
  AbandonAsClosed();
}

void ExsSocket::AbandonAsClosed() {
  const auto is_posted = [](const Operation& each) {
    const bool sends =
        each.type == EXS_EVT_SEND || each.type == EXS_EVT_SENDMSG || each.type == EXS_EVT_SENDFILE;
    return sends && !each.inner;
  };
  bool posted = false;
  {
    const std::lock_guard lock(mutex_);
    for (const Operation* each = operations_; each != nullptr; each = each->next) {
      posted = posted || is_posted(*each);
    }
  }
  (void)Abandon(posted ? CloseMode::kAbort : CloseMode::kGraceful);
  calls_.Leave();
}

}  // namespace esdp::exs
