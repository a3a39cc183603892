#include "tools/esdp_serve/shares.h"

#include <algorithm>

namespace esdp_serve {

void Shares::Want(uint32_t client, uint64_t bytes, uint32_t weight) {
  Client& one = clients_[client];
  if (one.wanted > 0) return;
  one.wanted = std::max<uint64_t>(bytes, 1);
  one.quantum = limits_.quantum * std::max(weight, 1u);
  // What is left of its quantum it may use in this turn.
  if (one.deficit >= one.wanted) {
    turns_.push_front(client);
  } else {
    turns_.push_back(client);
  }
}

void Shares::Forget(uint32_t client) {
  const auto found = clients_.find(client);
  if (found == clients_.end()) return;
  found->second.wanted = 0;
  found->second.deficit = 0;
  std::erase(turns_, client);
  DropIfIdle(client);
}

bool Shares::MayHaveMore(const Client& client, absl::Time now) const {
  if (client.held == 0) return true;
  // The last free slot is short supply already: whoever comes next would have none.
  const bool slow = free_ <= 1 && now - client.moved >= limits_.slow_after;
  return client.held < (slow ? 1 : limits_.slots_per_client);
}

std::optional<uint32_t> Shares::Next(absl::Time now) {
  if (free_ == 0) return std::nullopt;
  // Who has as many as it may waits where it is. One round raises every deficit by a quantum, and
  // nobody wants much more than that at a time.
  for (size_t passed = 0; passed < 2 * turns_.size();) {
    const auto turn = std::find_if(turns_.begin(), turns_.end(), [&](uint32_t client) {
      return MayHaveMore(clients_[client], now);
    });
    if (turn == turns_.end()) return std::nullopt;
    const uint32_t id = *turn;
    Client& client = clients_[id];
    turns_.erase(turn);
    if (client.deficit < client.wanted) client.deficit += client.quantum;
    if (client.deficit < client.wanted) {
      turns_.push_back(id);
      ++passed;
      continue;
    }
    // What a client does not use it does not save up.
    client.deficit = std::min(client.deficit - client.wanted, client.quantum);
    client.wanted = 0;
    if (client.held == 0) client.moved = now;
    ++client.held;
    --free_;
    return id;
  }
  return std::nullopt;
}

void Shares::Return(uint32_t client, absl::Time now) {
  const auto found = clients_.find(client);
  if (found == clients_.end() || found->second.held == 0) return;
  --found->second.held;
  found->second.moved = now;
  ++free_;
  DropIfIdle(client);
}

void Shares::DropIfIdle(uint32_t client) {
  const Client& one = clients_[client];
  if (one.held == 0 && one.wanted == 0) clients_.erase(client);
}

uint32_t Shares::held(uint32_t client) const {
  const auto found = clients_.find(client);
  return found == clients_.end() ? 0 : found->second.held;
}

std::vector<uint32_t> Shares::Stalled(absl::Duration since, absl::Time now) const {
  std::vector<uint32_t> stalled;
  for (const auto& [id, client] : clients_) {
    if (client.held > 0 && now - client.moved >= since) stalled.push_back(id);
  }
  return stalled;
}

}  // namespace esdp_serve
